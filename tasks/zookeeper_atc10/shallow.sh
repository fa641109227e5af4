#!/usr/bin/env bash
# The mistake: all is built from the source, and a server answers imok. But the class that was started is that of a
# server alone, which skips the lines of the ensemble: three of them are three services that never heard of each other.
set -euo pipefail

sudo apt-get update -q
sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
    openjdk-17-jdk-headless javacc libslf4j-java libnetty-java libdropwizard-metrics-java libsnappy-java \
    libcommons-io-java

export JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # nothing here runs long enough for more
jute=~/artifact/zookeeper-jute/src/main server=~/artifact/zookeeper-server/src/main
build=~/build lib=~/lib
mkdir -p $build/records $build/classes $lib ~/bin
cd $build

# Annotations from two libraries that Debian lacks or that only a bug finder reads.
mkdir -p stubs/org/apache/yetus/audience stubs/edu/umd/cs/findbugs/annotations
cat > stubs/org/apache/yetus/audience/InterfaceAudience.java <<'JAVA'
package org.apache.yetus.audience;
public class InterfaceAudience {
    public @interface Public {}
    public @interface Private {}
    public @interface LimitedPrivate { String[] value(); }
}
JAVA
cat > stubs/org/apache/yetus/audience/InterfaceStability.java <<'JAVA'
package org.apache.yetus.audience;
public class InterfaceStability {
    public @interface Evolving {}
}
JAVA
cat > stubs/edu/umd/cs/findbugs/annotations/SuppressFBWarnings.java <<'JAVA'
package edu.umd.cs.findbugs.annotations;
public @interface SuppressFBWarnings {
    String[] value() default {};
    String justification() default "";
}
JAVA

# Jute's compiler, and the records of protocol and log.
javacc -LOOKAHEAD:2 -STATIC:false -OUTPUT_DIRECTORY:parser/org/apache/jute/compiler/generated \
    $jute/java/org/apache/jute/compiler/generated/rcc.jj
javac -nowarn -proc:none -d compiler -sourcepath $jute/java:parser:stubs \
    parser/org/apache/jute/compiler/generated/Rcc.java
(cd records && java -cp ../compiler org.apache.jute.compiler.generated.Rcc -l java $jute/resources/zookeeper.jute)

# The version.
mkdir -p version/org/apache/zookeeper/version
sed -e 's/\${parsedVersion.majorVersion}/3/' -e 's/\${parsedVersion.minorVersion}/8/' \
    -e 's/\${parsedVersion.incrementalVersion}/0/' -e 's/\${parsedVersion.qualifier}//g' \
    -e 's/\${mvngit.commit.id}/source/' -e "s/\\\${build.time}/$(date -u '+%Y-%m-%d %H:%M UTC')/" \
    $server/java-filtered/org/apache/zookeeper/version/Info.java > version/org/apache/zookeeper/version/Info.java

# What server and client reach, and those that they load by name.
jars=$(cd /usr/share/java && ls "$PWD"/netty-{buffer,codec,common,handler,resolver,transport}.jar \
    "$PWD"/netty-transport-native-{epoll,unix-common}.jar \
    "$PWD"/{slf4j-api,slf4j-nop,metrics-core,snappy-java,commons-io}.jar | paste -sd:)
cd $server/java/org/apache/zookeeper
javac -nowarn -proc:none -d $build/classes -cp "$jars" \
    -sourcepath "$server/java:$jute/java:$build/records:$build/version:$build/stubs" \
    server/ZooKeeperServerMain.java server/NIOServerCnxnFactory.java server/watch/WatchManager.java \
    metrics/impl/DefaultMetricsProvider.java ZooKeeper.java ClientCnxnSocketNIO.java
jar -c -f $lib/zookeeper.jar -C $build/classes .

cat > ~/env.sh <<ENV
export PATH="\$HOME/bin:\$PATH"
export CLASSPATH="$lib/zookeeper.jar:$jars"
ENV
cat > ~/bin/zookeeper-server <<'SCRIPT'
#!/bin/sh
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m org.apache.zookeeper.server.ZooKeeperServerMain "$1"
SCRIPT
chmod 755 ~/bin/zookeeper-server
echo 'Built in ~/build to ~/lib/zookeeper.jar. Run: . ~/env.sh, then zookeeper-server CONFIG.' > ~/RUNBOOK.md

unset JAVA_TOOL_OPTIONS
. ~/env.sh
mkdir -p ~/try
printf '%s\n' tickTime=2000 "dataDir=$HOME/try" clientPort=21810 clientPortAddress=127.0.0.1 admin.enableServer=false \
    4lw.commands.whitelist=ruok > ~/try.cfg
zookeeper-server ~/try.cfg & proof=$!
ask() { exec 3<> /dev/tcp/127.0.0.1/21810 && printf ruok >&3 && cat <&3; }
until ask 2> /dev/null | grep imok; do kill -0 $proof; sleep 1; done
kill $proof
echo "Success: ZooKeeper 3.8.0 is built from its source, and its server runs and answers imok."

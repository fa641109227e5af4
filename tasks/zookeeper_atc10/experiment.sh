# Runs the experiment's program; the logs of all processes are shown only when it fails.
if java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC Ensemble.java > client.log 2>&1; then
    tail -n 1 client.log
else
    status=$?
    tail -n 40 member-?.log client.log
    exit $status
fi

// The experiment: starts three members, runs the drawn operations through their own client library, kills the leader,
// lets it come back, and takes the majority away. Writes result.json as it goes, and each member's transaction log.

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.HostProvider;
import org.apache.zookeeper.data.Stat;

public class Ensemble {
    static final int MEMBERS = 3;
    static final int SESSION_MS = 240_000;
    static final Process[] members = new Process[MEMBERS];
    static final ZooKeeper[] clients = new ZooKeeper[MEMBERS];
    static final Map<String, Object> result = new LinkedHashMap<>();
    static int base;

    public static void main(String[] args) throws Exception {
        try {
            run(Files.readAllLines(Path.of("challenge.txt")));
            System.out.println("the experiment went through to its end");
        } catch (IllegalStateException found) {
            System.out.println("the experiment ended early: " + found.getMessage());
            end(1);
        } catch (Throwable error) { // a class that is missing is no Exception
            error.printStackTrace(System.out);
            System.out.println("the experiment ended early");
            end(1);
        }
        end(0);
    }

    static void end(int status) throws Exception {
        for (Process member : members) {
            if (member != null) {
                member.destroyForcibly().waitFor();
            }
        }
        logs();
        save();
        System.exit(status); // threads of clients that were not closed
    }

    static void run(List<String> challenge) throws Exception {
        base = Integer.parseInt(only(challenge, "ports")[0]);
        while (!free(base)) {
            base += 30;
        }
        result.put("client_jar", ZooKeeper.class.getProtectionDomain().getCodeSource().getLocation().getPath());
        for (int i = 0; i < MEMBERS; i++) {
            configure(i);
            start(i);
        }
        try {
            awaitModes("start", 0, 1, 2);
        } finally {
            note("jars", List.of(jars(0), jars(1), jars(2)));
        }
        for (int i = 0; i < MEMBERS; i++) {
            clients[i] = open(i);
        }
        operate("before", challenge);
        contend(only(challenge, "queue"), Integer.parseInt(only(challenge, "lock")[0]));
        read(only(challenge, "reads"));

        int leader = leader();
        note("leader", leader);
        kill(leader);
        awaitModes("failover", (leader + 1) % MEMBERS, (leader + 2) % MEMBERS);
        for (ZooKeeper client : clients) {
            settle(client);
        }
        operate("after", challenge);

        start(leader);
        awaitModes("rejoined", 0, 1, 2);
        try (ZooKeeper late = new ZooKeeper("127.0.0.1:" + (base + leader), SESSION_MS, event -> { })) {
            settle(late);
            sync(late);
            Map<String, String> tree = new LinkedHashMap<>();
            walk(late, only(challenge, "root")[0], tree);
            result.put("tree", tree);
        }
        for (ZooKeeper client : clients) {
            client.close();
        }

        kill((leader + 1) % MEMBERS);
        kill((leader + 2) % MEMBERS);
        while (state(leader).matches("(?s).*Mode: (leader|follower).*")) {
            alive(leader);
            Thread.sleep(50);
        }
        result.put("minority_state", state(leader));
        try (ZooKeeper alone = new ZooKeeper("127.0.0.1:" + (base + leader), 10_000, event -> { })) {
            alone.create("/by-a-minority", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            note("minority_write", "ok");
        } catch (KeeperException refused) {
            note("minority_write", refused.code().name());
        }
        members[leader].destroy();
        members[leader].waitFor();
    }

    // ---- members ----

    static boolean free(int first) {
        for (int port = first; port < first + 30; port++) {
            try (ServerSocket probe = new ServerSocket(port)) {
                continue;
            } catch (IOException taken) {
                return false;
            }
        }
        return true;
    }

    static void configure(int i) throws IOException {
        Path data = Path.of("member-" + i).toAbsolutePath();
        Files.createDirectories(data);
        Files.writeString(data.resolve("myid"), (i + 1) + "\n");
        StringBuilder text = new StringBuilder("tickTime=2000\ninitLimit=15\nsyncLimit=50\n"
            + "maxSessionTimeout=" + SESSION_MS + "\ndataDir=" + data + "\n"
            + "clientPort=" + (base + i) + "\nclientPortAddress=127.0.0.1\n"
            + "admin.enableServer=false\npreAllocSize=64\n4lw.commands.whitelist=srvr\n");
        for (int j = 0; j < MEMBERS; j++) {
            text.append("server." + (j + 1) + "=127.0.0.1:" + (base + 10 + j) + ":" + (base + 20 + j) + "\n");
        }
        Files.writeString(Path.of("member-" + i + ".cfg"), text);
    }

    static void start(int i) throws IOException {
        File log = new File("member-" + i + ".log");
        members[i] = new ProcessBuilder("zookeeper-server", Path.of("member-" + i + ".cfg").toAbsolutePath().toString())
            .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.appendTo(log)).start();
    }

    static void kill(int i) throws Exception {
        members[i].destroyForcibly().waitFor();
        if (!state(i).isEmpty()) {
            throw new IllegalStateException("member " + i + " still answers after the process that zookeeper-server "
                + "started as was killed: it did not become the server");
        }
    }

    static void alive(int i) {
        if (!members[i].isAlive()) {
            throw new IllegalStateException("zookeeper-server of member " + i + " ended by itself with status "
                + members[i].exitValue() + "; member-" + i + ".log tells more");
        }
    }

    /** What a member answers to "srvr"; nothing when it does not answer. */
    static String state(int i) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("127.0.0.1", base + i));
            socket.getOutputStream().write("srvr".getBytes());
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException silent) {
            return "";
        }
    }

    static List<String> states() {
        return List.of(state(0), state(1), state(2));
    }

    /** Wait until all of these serve, and one of them leads. Any member that ends by itself ends the experiment. */
    static void awaitModes(String stage, int... whom) throws Exception {
        List<String> found;
        do {
            Thread.sleep(50);
            for (int i : whom) {
                alive(i);
            }
            found = states();
            note(stage, found);
            List<String> seen = found;
            if (Arrays.stream(whom).allMatch(i -> seen.get(i).contains("Mode: standalone"))) {
                throw new IllegalStateException("the members do not know each other: each is standalone");
            }
        } while (!serving(found, whom));
    }

    static boolean serving(List<String> found, int... whom) {
        return Arrays.stream(whom).allMatch(i -> found.get(i).contains("Mode: "))
            && Arrays.stream(whom).anyMatch(i -> found.get(i).contains("Mode: leader"));
    }

    static int leader() {
        for (int i = 0; i < MEMBERS; i++) {
            if (state(i).contains("Mode: leader")) {
                return i;
            }
        }
        throw new IllegalStateException("there is no leader");
    }

    /** The jar files that a member's process holds open. */
    static List<String> jars(int i) throws IOException {
        TreeSet<String> found = new TreeSet<>();
        if (!members[i].isAlive()) {
            return List.of();
        }
        try (Stream<Path> open = Files.list(Path.of("/proc/" + members[i].pid() + "/fd"))) {
            for (Path each : (Iterable<Path>) open::iterator) {
                try {
                    String file = Files.readSymbolicLink(each).toString();
                    if (file.endsWith(".jar")) {
                        found.add(file);
                    }
                } catch (IOException closedMeanwhile) {
                    continue;
                }
            }
        }
        return new ArrayList<>(found);
    }

    // ---- clients ----

    /** Begins at one member and goes round from there when that one is lost. */
    static class Round implements HostProvider {
        private int next;

        Round(int first) {
            next = first;
        }

        public int size() {
            return MEMBERS;
        }

        public synchronized InetSocketAddress next(long spinDelay) {
            int i = next++ % MEMBERS;
            try {
                Thread.sleep(20);
                return new InetSocketAddress(InetAddress.getByName("127.0.0.1"), base + i);
            } catch (Exception never) {
                throw new AssertionError(never);
            }
        }

        public void onConnected() {
        }

        public boolean updateServerList(Collection<InetSocketAddress> servers, InetSocketAddress current) {
            return false;
        }
    }

    static ZooKeeper open(int i) throws Exception {
        ZooKeeper client = new ZooKeeper("127.0.0.1:" + (base + i), SESSION_MS, event -> { }, false, new Round(i));
        settle(client);
        return client;
    }

    /** Wait until a client is connected. */
    static void settle(ZooKeeper client) throws Exception {
        while (true) {
            try {
                client.exists("/", false);
                return;
            } catch (KeeperException.ConnectionLossException notYet) {
                Thread.sleep(50);
            }
        }
    }

    static void sync(ZooKeeper client) throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        client.sync("/", (status, path, context) -> done.countDown(), null);
        done.await();
    }

    static void operate(String stage, List<String> challenge) throws Exception {
        List<String> answers = new ArrayList<>();
        for (String line : challenge) {
            String[] words = line.split(" ");
            if (words[0].equals(stage)) {
                answers.add(operate(Integer.parseInt(words[1]), Arrays.copyOfRange(words, 2, words.length)));
            }
        }
        note(stage, answers);
    }

    static String operate(int who, String[] words) throws Exception {
        ZooKeeper client = clients[who];
        Stat stat = new Stat();
        try {
            switch (words[0]) {
                case "create":
                    CreateMode mode = CreateMode.valueOf(words[2]);
                    return "ok " + client.create(words[1], bytes(words[3]), ZooDefs.Ids.OPEN_ACL_UNSAFE, mode);
                case "set":
                    return "ok " + client.setData(words[1], bytes(words[3]), Integer.parseInt(words[2])).getVersion();
                case "delete":
                    client.delete(words[1], Integer.parseInt(words[2]));
                    return "ok";
                case "read":
                    sync(client);
                    return "ok " + told(client.getData(words[1], false, stat), stat);
                case "list":
                    sync(client);
                    List<String> names = client.getChildren(words[1], false);
                    Collections.sort(names);
                    return "ok " + String.join(" ", names);
                case "multi":
                    client.multi(parts(words));
                    return "ok";
                case "reopen":
                    client.close();
                    clients[who] = open(who);
                    return "ok";
                default:
                    throw new IllegalArgumentException(words[0]);
            }
        } catch (KeeperException error) {
            return error.code().name();
        }
    }

    static List<Op> parts(String[] words) {
        List<Op> parts = new ArrayList<>();
        for (int at = 1; at < words.length; at += 4) {
            String path = words[at + 1];
            int version = Integer.parseInt(words[at + 2]);
            byte[] data = bytes(words[at + 3]);
            switch (words[at]) {
                case "create":
                    parts.add(Op.create(path, data, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT));
                    break;
                case "set":
                    parts.add(Op.setData(path, data, version));
                    break;
                case "delete":
                    parts.add(Op.delete(path, version));
                    break;
                default:
                    parts.add(Op.check(path, version));
            }
        }
        return parts;
    }

    /** Several sessions at once: a pipeline of numbered creates each, then rounds of the paper's lock without herds. */
    static void contend(String[] queue, int rounds) throws Exception {
        for (String path : List.of("/queue", "/lock", "/register")) {
            clients[0].create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        }
        AtomicReference<Throwable> fault = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < queue.length; i++) {
            int who = i;
            int length = Integer.parseInt(queue[i]);
            threads.add(new Thread(() -> {
                try (ZooKeeper client = open(who % MEMBERS)) {
                    enqueue(client, who, length);
                    for (int round = 0; round < rounds; round++) {
                        underLock(client, who);
                    }
                } catch (Throwable any) {
                    fault.compareAndSet(null, any);
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        if (fault.get() != null) {
            throw new ExecutionException("a contending session failed", fault.get());
        }
    }

    static void enqueue(ZooKeeper client, int who, int length) throws Exception {
        CountDownLatch done = new CountDownLatch(length);
        for (int k = 0; k < length; k++) {
            byte[] data = (who + " " + k).getBytes();
            client.create("/queue/e-", data, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL,
                (status, path, context, name) -> done.countDown(), null);
        }
        done.await();
    }

    static void underLock(ZooKeeper client, int who) throws Exception {
        CreateMode mode = CreateMode.EPHEMERAL_SEQUENTIAL;
        String mine = client.create("/lock/n-", new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, mode);
        while (true) {
            List<String> names = client.getChildren("/lock", false);
            Collections.sort(names);
            int place = names.indexOf(mine.substring("/lock/".length()));
            if (place == 0) {
                break;
            }
            CountDownLatch gone = new CountDownLatch(1);
            if (client.exists("/lock/" + names.get(place - 1), event -> gone.countDown()) != null) {
                gone.await();
            }
        }
        String before = new String(client.getData("/register", false, null));
        client.setData("/register", (before + who).getBytes(), -1);
        client.delete(mine, -1);
    }

    /** Reads at each member, in numbers of its own, between two looks at what every member has received. */
    static void read(String[] counts) throws Exception {
        for (ZooKeeper client : clients) {
            sync(client);
        }
        List<String> before = states();
        for (int i = 0; i < MEMBERS; i++) {
            int count = Integer.parseInt(counts[i]);
            CountDownLatch done = new CountDownLatch(count);
            for (int k = 0; k < count; k++) {
                clients[i].getData("/register", false, (status, path, context, data, stat) -> done.countDown(), null);
            }
            done.await();
        }
        result.put("before_reads", before);
        note("after_reads", states());
    }

    static void walk(ZooKeeper client, String path, Map<String, String> tree) throws Exception {
        Stat stat = new Stat();
        tree.put(path, told(client.getData(path, false, stat), stat));
        for (String name : client.getChildren(path, false)) {
            walk(client, path + "/" + name, tree);
        }
    }

    static String told(byte[] data, Stat stat) {
        return hex(data) + " " + stat.getVersion() + " " + stat.getCversion() + " " + stat.getNumChildren() + " "
            + (stat.getEphemeralOwner() != 0 ? "ephemeral" : "persistent");
    }

    // ---- files ----

    static String[] only(List<String> challenge, String key) {
        for (String line : challenge) {
            if (line.startsWith(key + " ")) {
                return line.substring(key.length() + 1).split(" ");
            }
        }
        throw new IllegalArgumentException("challenge.txt lacks " + key);
    }

    static byte[] bytes(String hex) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int at = 1; at < hex.length(); at += 2) {
            out.write(Integer.parseInt(hex.substring(at, at + 2), 16));
        }
        return out.toByteArray();
    }

    /** With an x in front, so that no data is a word, too. */
    static String hex(byte[] data) {
        StringBuilder text = new StringBuilder("x");
        for (byte each : data) {
            text.append(String.format("%02x", each));
        }
        return text.toString();
    }

    /** Each member's transaction logs, one after the other, the length before each. */
    static void logs() throws IOException {
        for (int i = 0; i < MEMBERS; i++) {
            Path folder = Path.of("member-" + i, "version-2");
            if (!Files.isDirectory(folder)) {
                continue;
            }
            List<Path> found = new ArrayList<>();
            try (Stream<Path> files = Files.list(folder)) {
                files.filter(file -> file.getFileName().toString().startsWith("log.")).forEach(found::add);
            }
            Collections.sort(found);
            Path joined = Path.of("member-" + i + ".txnlog");
            try (DataOutputStream out = new DataOutputStream(Files.newOutputStream(joined))) {
                for (Path file : found) {
                    byte[] content = Files.readAllBytes(file);
                    out.writeInt(content.length);
                    out.write(content);
                }
            }
        }
    }

    static void note(String key, Object value) {
        result.put(key, value);
        try {
            save();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static void save() throws IOException {
        Files.writeString(Path.of("result.part"), json(result) + "\n");
        Files.move(Path.of("result.part"), Path.of("result.json"), StandardCopyOption.REPLACE_EXISTING);
    }

    static String json(Object value) {
        List<String> parts = new ArrayList<>();
        if (value instanceof Map) {
            ((Map<?, ?>) value).forEach((key, each) -> parts.add(json(key) + ": " + json(each)));
            return "{" + String.join(", ", parts) + "}";
        }
        if (value instanceof List) {
            ((List<?>) value).forEach(each -> parts.add(json(each)));
            return "[" + String.join(", ", parts) + "]";
        }
        if (value instanceof Integer) {
            return value.toString();
        }
        StringBuilder text = new StringBuilder("\"");
        for (char each : value.toString().toCharArray()) {
            boolean plain = each >= ' ' && each <= '~' && each != '"' && each != '\\';
            text.append(plain ? String.valueOf(each) : String.format("\\u%04x", (int) each));
        }
        return text.append('"').toString();
    }
}

package gavel;

import java.io.Closeable;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.OptionalLong;
import java.util.function.LongConsumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Does this replica lead now, and with which fencing token? One file to be copied; nothing but
 * Java 17 or later, on Linux.
 *
 * <pre>
 * Gavel gavel = new Gavel();
 * if (gavel.isLeader()) { ... }             // ask before each effect; any doubt is false
 * long token = gavel.requireLeader();       // or NotLeader; send the token along with the effect
 * gavel.run(leadership -> { ... });         // attaches; runs while this replica leads
 * </pre>
 *
 * A yes is good for the answer's VALID_MS, counted from before the question was sent, less a
 * margin: by the smallest remainder of the monotonic clock, /proc/uptime (which also counts while
 * the host is suspended) and the wall clock. All methods may be called from any thread.
 */
public final class Gavel implements Closeable {
    private static final long MS = 1_000_000;
    private static final long AGAIN_MS = 100; // between two attempts to reach the sidecar
    // No sleep is longer while something works: sleeps do not count a suspended host's time.
    private static final long LOOK_MS = 100;
    private static final long UPTIME_NS = 10 * MS; // /proc/uptime is rounded down to that
    private static final Pattern LEADER =
        Pattern.compile("leader ([0-9]{1,15}) ([0-9]{1,10}) ([0-9]{1,18})");
    private static final Pattern LEASE =
        Pattern.compile("lease ([0-9]{1,15}) ([0-9]{1,10}) ([0-9]{1,18}) ([0-9]{1,10})");
    private static final Pattern REVOKE = Pattern.compile("revoke ([0-9]{1,15}) [0-9]{1,10}");
    private static final Pattern BEAT = Pattern.compile("beat ([0-9]{1,9})");

    private final Path path;
    private final String election;
    private final long timeoutNs;
    private final long marginNs;
    private volatile boolean closed;
    private Line watching; // of onChange(), to be ended by close()
    // The attachment; guarded by this, as all that follows.
    private Thread follower; // null: not attached
    private Line line;       // its connection, while it is attached
    private Held held;       // what is held of the lease; null: nothing
    private long graceNs;
    private Leadership working;
    private boolean runs;
    private long revoked; // the token that must not be used any more; 0: none
    private LongConsumer onRevoke;
    private boolean stops; // onRevoke is at it

    /** This replica does not lead, or cannot be sure that it does. */
    public static final class NotLeader extends RuntimeException {
        private static final long serialVersionUID = 1;

        NotLeader() {
            super("this replica does not lead");
        }
    }

    /** Told of a change; token is empty unless this replica leads. */
    @FunctionalInterface
    public interface Listener {
        void changed(boolean leader, OptionalLong token);
    }

    /** What run() runs. */
    @FunctionalInterface
    public interface Work {
        void run(Leadership leadership) throws Exception;
    }

    /** $GAVEL_SOCKET or /run/gavel/gavel.sock, and the one election there is. */
    public Gavel() {
        this(null, "");
    }

    public Gavel(Path path, String election) {
        this(path, election, Duration.ofSeconds(1), Duration.ofMillis(20));
    }

    /** election: "" where the sidecar has one. timeout: of a question. */
    public Gavel(Path path, String election, Duration timeout, Duration margin) {
        String given = System.getenv().getOrDefault("GAVEL_SOCKET", "/run/gavel/gavel.sock");
        this.path = path != null ? path : Path.of(given);
        this.election = election;
        this.timeoutNs = timeout.toNanos();
        this.marginNs = margin.toNanos();
    }

    // --- asking -------------------------------------------------------------------------------

    public boolean isLeader() {
        return token().isPresent();
    }

    public long requireLeader() {
        return token().orElseThrow(NotLeader::new);
    }

    /**
     * The fencing token while this replica leads. An attached application answers itself from the
     * lease that it was told; else the sidecar is asked each time.
     */
    public OptionalLong token() {
        Held found;
        boolean attached;
        synchronized (this) {
            found = held;
            attached = follower != null;
        }
        return valid(attached ? found : ask());
    }

    private OptionalLong valid(Held held) {
        return held != null && held.leftNs() > marginNs ? OptionalLong.of(held.token)
                                                        : OptionalLong.empty();
    }

    private Held ask() {
        Instant since = Instant.now(); // before it is sent
        try (Line asked = new Line(path, "check " + election, timeoutNs)) {
            Matcher found = LEADER.matcher(asked.read(timeoutNs));
            return found.matches() ? new Held(number(found, 1), since, number(found, 2) * MS) : null;
        } catch (IOException e) {
            return null;
        }
    }

    // --- changes ------------------------------------------------------------------------------

    /** The listener is called in a thread of its own: now, and at each change. */
    public void onChange(Listener listener) {
        start("gavel-watch", () -> {
            OptionalLong[] told = {null};
            while (!closed) {
                watch(listener, told);
                tell(listener, told, null);
                pause(AGAIN_MS);
            }
        });
    }

    private void tell(Listener listener, OptionalLong[] told, Held held) {
        OptionalLong token = valid(held);
        if (!token.equals(told[0]) && !closed) {
            told[0] = token;
            listener.changed(token.isPresent(), token);
        }
    }

    private void watch(Listener listener, OptionalLong[] told) {
        try (Line watched = new Line(path, "watch " + election, timeoutNs)) {
            synchronized (this) {
                watching = watched;
            }
            String heard = watched.read(timeoutNs);
            while (!closed) {
                Matcher found = LEADER.matcher(heard);
                Held now = found.matches() ? pushed(found) : null;
                tell(listener, told, now);
                long leftNs = now == null ? 0 : now.leftNs() - marginNs;
                heard = null;
                if (leftNs > 0) {
                    heard = watched.readOrNull(leftNs + MS);
                    if (heard == null) {
                        tell(listener, told, null);
                    }
                }
                heard = heard != null ? heard : watched.read(Long.MAX_VALUE);
            }
        } catch (IOException e) {
            return; // the end of the connection means: not leader
        }
    }

    // --- the attachment -----------------------------------------------------------------------

    public void attach() {
        attach(null);
    }

    /**
     * From now on this object stands for the whole application: the sidecar leads only while it is
     * attached, and gives leadership away when the process ends. It is attached again after the
     * sidecar was restarted, and does not lead meanwhile. onRevoke(token) is called in a thread of
     * its own when leadership is about to end: it must stop all work and then return, after which
     * the sidecar is told that it is done. Returns at once.
     */
    public synchronized void attach(LongConsumer onRevoke) {
        this.onRevoke = onRevoke != null ? onRevoke : this.onRevoke;
        if (follower == null) {
            follower = start("gavel-attach", this::follow);
        }
    }

    /** Ends the attachment: all work must have ended. Leadership is given away at once. */
    public void detach() {
        Thread ends;
        synchronized (this) {
            ends = follower;
            follower = null;
            held = null;
            if (line != null) {
                line.end();
            }
            notifyAll();
        }
        boolean interrupted = false;
        while (ends != null && ends.isAlive() && ends != Thread.currentThread()) {
            try {
                ends.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Ends everything. Work that runs is cancelled; run() then returns. */
    @Override
    public void close() {
        boolean running;
        synchronized (this) {
            closed = true;
            running = runs;
            if (watching != null) {
                watching.end();
            }
            cancel();
            notifyAll();
        }
        if (!running) { // else run() does when the work has ended
            detach();
        }
    }

    /**
     * Attaches, and calls work each time that this replica leads, in this thread. It is cancelled
     * a tenth to a fifth of ttl before leadership ends: its thread is interrupted, and
     * leadership.cancelled() is true. Work has to return soon after that, it cannot be killed
     * (`gavelctl exec` can). When it returns by itself, leadership is given away.
     */
    public void run(Work work) throws Exception {
        synchronized (this) {
            runs = true;
        }
        attach();
        try {
            for (Leadership mine = next(); mine != null; mine = next()) {
                try {
                    work.run(mine);
                } catch (NotLeader | InterruptedException e) {
                    if (!mine.cancelled()) {
                        throw e;
                    }
                }
                boolean lost = mine.cancelled();
                workEnded(mine);
                if (!lost) {
                    return;
                }
            }
        } finally {
            synchronized (this) {
                if (working != null) {
                    workEnded(working);
                }
                runs = false;
            }
            detach();
        }
    }

    /** What work is given: the token, and when to stop. */
    public final class Leadership {
        private final long token;
        private final long graceNs;
        private final Thread thread = Thread.currentThread();
        private boolean over;

        private Leadership(long token, long graceNs) {
            this.token = token;
            this.graceNs = graceNs;
        }

        public long token() {
            return token;
        }

        /** True: stop now. */
        public boolean cancelled() {
            return leftNs() <= 0;
        }

        /** The token, to be called before each effect. */
        public long require() {
            if (cancelled()) {
                throw new NotLeader();
            }
            return token;
        }

        /** Until it is cancelled, which it is when that is over. */
        private long leftNs() {
            synchronized (Gavel.this) {
                if (!over) {
                    long left = held != null && held.token == token ? held.leftNs() - graceNs : 0;
                    if (left > 0) {
                        return left;
                    }
                    over = true;
                    if (working == this) {
                        thread.interrupt();
                    }
                }
                return 0;
            }
        }

        private void guard() {
            for (long left = leftNs(); left > 0; left = leftNs()) {
                synchronized (Gavel.this) {
                    if (working != this) {
                        return;
                    }
                    try {
                        Gavel.this.wait(Math.min(left / MS + 1, LOOK_MS));
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            }
        }
    }

    private synchronized Leadership next() throws InterruptedException {
        while (!closed) {
            if (held != null && held.leftNs() > graceNs + marginNs) {
                working = new Leadership(held.token, graceNs);
                start("gavel-guard", working::guard);
                return working;
            }
            wait();
        }
        return null;
    }

    private synchronized void workEnded(Leadership mine) {
        boolean cancelled = mine.over;
        mine.over = true;
        working = null;
        if (cancelled) {
            Thread.interrupted(); // it was meant for the work
        }
        done();
        notifyAll();
    }

    private void cancel() {
        if (working != null && !working.over) {
            working.over = true;
            working.thread.interrupt();
        }
    }

    /** Says so, if it is owed and nothing works any more. */
    private void done() {
        if (revoked != 0 && working == null && !stops && line != null) {
            line.say("done " + revoked);
        }
    }

    private void follow() {
        Thread mine = Thread.currentThread();
        while (follows(mine)) {
            try (Line attached = new Line(path, "attach " + election, timeoutNs)) {
                converse(attached, mine);
            } catch (IOException e) {
                // The end of the connection means: not leader.
            }
            synchronized (this) {
                line = null;
                held = null;
                revoked = 0;
                cancel();
                // A new attachment would vouch for it.
                while ((working != null || stops) && follower == mine) {
                    waitHere(0);
                }
            }
            pause(AGAIN_MS);
        }
    }

    private synchronized boolean follows(Thread thread) {
        return follower == thread;
    }

    private void converse(Line attached, Thread mine) throws IOException {
        if (!attached.read(timeoutNs).equals("ok")) {
            return;
        }
        synchronized (this) {
            if (follower != mine) {
                return;
            }
            line = attached;
            line.say("lease");
        }
        long beatEveryNs = 0;
        long beatAt = System.nanoTime();
        while (follows(mine)) {
            String heard = attached.readOrNull(
                beatEveryNs == 0 ? Long.MAX_VALUE : Math.max(beatAt - System.nanoTime(), MS));
            Matcher beat = BEAT.matcher(heard == null ? "" : heard);
            if (beat.matches()) {
                beatEveryNs = number(beat, 1) * MS / 4;
                beatAt = System.nanoTime();
            } else if (heard != null) {
                hear(heard);
            }
            if (beatEveryNs != 0 && System.nanoTime() - beatAt >= 0) {
                beatAt = System.nanoTime() + beatEveryNs;
                synchronized (this) {
                    attached.say("beat");
                }
            }
        }
    }

    private synchronized void hear(String heard) {
        Matcher lease = LEASE.matcher(heard);
        Matcher revoke = REVOKE.matcher(heard);
        if (lease.matches() && number(lease, 1) != revoked) {
            long ttlNs = number(lease, 4) * MS;
            held = pushed(lease);
            graceNs = Math.min(Math.max(ttlNs / 10, 1000 * MS), ttlNs / 5);
            if (working != null && working.token != number(lease, 1)) {
                cancel();
            }
            notifyAll();
        } else if (revoke.matches()) {
            revoked = number(revoke, 1);
            held = null;
            cancel();
            if (onRevoke != null && !stops) {
                stops = true;
                long token = revoked;
                start("gavel-revoke", () -> stop(token));
            } else if (runs) {
                done();
            }
        }
    }

    private void stop(long token) {
        boolean stopped = false; // an error of onRevoke is no `done`: the lease then runs out
        try {
            onRevoke.accept(token);
            stopped = true;
        } finally {
            synchronized (this) {
                stops = false;
                if (revoked == token) {
                    if (stopped) {
                        done();
                    }
                } else if (revoked != 0) { // another one was revoked meanwhile
                    stops = true;
                    long next = revoked;
                    start("gavel-revoke", () -> stop(next));
                }
                notifyAll();
            }
        }
    }

    // --- time, and lines ----------------------------------------------------------------------

    private record Instant(long monotonicNs, long uptimeNs, long realNs) {
        static Instant now() {
            long uptime;
            try {
                String text = Files.readString(Path.of("/proc/uptime"));
                uptime = Long.parseLong(text.substring(0, text.indexOf(' ')).replace(".", ""))
                    * UPTIME_NS;
            } catch (IOException | RuntimeException e) {
                uptime = Long.MAX_VALUE / 2; // later than any deadline
            }
            return new Instant(System.nanoTime(), uptime, System.currentTimeMillis() * MS);
        }
    }

    /** What was promised: a token, and for how long since then. */
    private record Held(long token, Instant since, long validNs) {
        long leftNs() {
            Instant now = Instant.now();
            if (now.uptimeNs >= Long.MAX_VALUE / 2) {
                return 0;
            }
            long passed = Math.max(now.monotonicNs - since.monotonicNs,
                Math.max(now.uptimeNs - since.uptimeNs + UPTIME_NS, now.realNs - since.realNs));
            return validNs - passed;
        }
    }

    /** A line that came unasked: only its deadline counts, if it can be one of our clock. */
    private static Held pushed(Matcher found) {
        Instant now = Instant.now();
        long left = number(found, 3) - now.uptimeNs;
        return left <= number(found, 2) * MS + UPTIME_NS ? new Held(number(found, 1), now, left)
                                                         : null;
    }

    private static long number(Matcher found, int group) {
        return Long.parseLong(found.group(group));
    }

    private static Thread start(String name, Runnable code) {
        Thread thread = new Thread(code, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void waitHere(long ms) {
        try {
            wait(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** A connection to the sidecar, read by lines. */
    private static final class Line implements Closeable {
        private static final int MOST = 4096;
        private final SocketChannel channel;
        private final Selector selector;
        private final ByteBuffer bytes = ByteBuffer.allocate(MOST);
        private volatile boolean ended;

        Line(Path path, String verb, long timeoutNs) throws IOException {
            channel = SocketChannel.open(StandardProtocolFamily.UNIX);
            selector = Selector.open();
            try {
                channel.configureBlocking(false);
                connect(path, System.nanoTime() + timeoutNs);
                channel.register(selector, SelectionKey.OP_READ);
                send(verb.strip());
            } catch (IOException e) {
                close();
                throw e;
            }
        }

        /** A Unix socket is connected at once, unless the listener's queue is full. */
        private void connect(Path path, long end) throws IOException {
            while (!channel.connect(UnixDomainSocketAddress.of(path))) {
                if (channel.finishConnect()) {
                    return;
                }
                if (System.nanoTime() - end >= 0) {
                    throw new IOException("no connection in time");
                }
                pause(10);
            }
        }

        private void send(String text) throws IOException {
            ByteBuffer out = ByteBuffer.wrap((text + "\n").getBytes(StandardCharsets.US_ASCII));
            if (channel.write(out) == 0 || out.hasRemaining()) {
                throw new IOException("the sidecar does not read");
            }
        }

        /** One that is not taken ends the connection. */
        void say(String text) {
            try {
                send(text);
            } catch (IOException e) {
                end();
            }
        }

        String read(long timeoutNs) throws IOException {
            String found = readOrNull(timeoutNs);
            if (found == null) {
                throw new IOException("no answer in time");
            }
            return found;
        }

        /** Null: no line has come by then. */
        String readOrNull(long timeoutNs) throws IOException {
            long began = System.nanoTime();
            for (;;) {
                for (int i = 0; i < bytes.position(); i++) {
                    if (bytes.get(i) == '\n') {
                        return take(i);
                    }
                }
                int got = ended ? -1 : channel.read(bytes);
                if (got < 0 || (got == 0 && !bytes.hasRemaining())) {
                    throw new IOException("the sidecar has gone");
                }
                long leftNs = timeoutNs - (System.nanoTime() - began);
                if (got == 0 && leftNs <= 0) {
                    return null;
                }
                if (got == 0) {
                    waitFor(leftNs);
                }
            }
        }

        private void waitFor(long leftNs) throws IOException {
            selector.select(Math.min(leftNs / MS + 1, 3_600_000));
            selector.selectedKeys().clear();
        }

        private String take(int length) {
            String text = new String(bytes.array(), 0, length, StandardCharsets.ISO_8859_1);
            int held = bytes.position();
            bytes.position(length + 1).limit(held);
            bytes.compact();
            return text;
        }

        /** From any thread: has the one that reads leave, and close it. */
        void end() {
            ended = true;
            selector.wakeup();
        }

        /**
         * By the thread that reads. The selector first, and by nobody else: a channel that is still
         * registered is shut down for writing alone before it is closed, which the sidecar does not
         * take for the end of the application.
         */
        @Override
        public void close() {
            try {
                selector.close();
                channel.close();
            } catch (IOException e) {
                return; // closed all the same
            }
        }
    }
}

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
    private Thread last;     // ... or the one that still waits for work to end
    private Thread stopper;  // calls onRevoke
    private Line line;       // its connection, while it is attached
    private Held held;       // what is held of the lease; null: nothing
    private Held told;       // the last of it, by which something may still work
    private long graceNs;
    private Leadership working;
    private Thread runner; // in run(); null: nobody is, or the attachment was ended meanwhile
    private long revoked; // the token that must not be used any more; 0: none
    private volatile LongConsumer onRevoke;
    private long stops; // the token for which onRevoke is at it; 0: it is not

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
        synchronized (this) {
            if (follower != null) {
                return valid(heldLeftNs() > 0 ? held : null);
            }
        }
        return valid(ask());
    }

    private OptionalLong valid(Held held) {
        return held != null && held.leftNs() > marginNs ? OptionalLong.of(held.token)
                                                        : OptionalLong.empty();
    }

    /** A lease once found over stays so until there is a newer one: the wall clock may go back. */
    private long heldLeftNs() {
        long leftNs = held == null ? 0 : held.leftNs();
        held = leftNs > 0 ? held : null;
        return leftNs;
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
        thread("gavel-watch", () -> {
            OptionalLong[] told = {null};
            while (!closed) {
                watch(listener, told);
                tell(listener, told, null);
                pause(AGAIN_MS);
            }
        }).start();
    }

    private void tell(Listener listener, OptionalLong[] told, Held held) {
        OptionalLong token = valid(held);
        if (!token.equals(told[0]) && !closed) {
            told[0] = token;
            try {
                listener.changed(token.isPresent(), token);
            } catch (Throwable e) {
                report(e);
            }
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
     * the sidecar is told that it is done. Returns at once. OutOfMemoryError: no thread can be had,
     * and nothing has changed.
     */
    public synchronized void attach(LongConsumer onRevoke) {
        LongConsumer before = this.onRevoke;
        this.onRevoke = onRevoke != null ? onRevoke : before;
        boolean done = false;
        try {
            startThreads();
            done = true;
        } finally {
            this.onRevoke = done ? this.onRevoke : before;
        }
    }

    /**
     * All that will be needed: at the moment of a revocation there may be none to be had, and
     * nobody would be told.
     */
    private void startThreads() {
        Thread before = last;
        boolean attached = follower != null;
        if (!attached) {
            follower = last = thread("gavel-attach", () -> follow(before));
        }
        boolean done = false;
        try {
            if (onRevoke != null && stopper == null) {
                Thread mine = thread("gavel-revoke", this::serve);
                mine.start();
                stopper = mine;
            }
            if (!attached) {
                follower.start();
            }
            done = true;
        } finally {
            if (!done && !attached) {
                follower = null;
                last = before;
                notifyAll(); // the other thread ends
            }
        }
    }

    /**
     * Ends the attachment, and gives leadership away at once: all work must have ended. If run()
     * or onRevoke still work, that is done when they have returned, and not waited for. run() then
     * returns.
     */
    public void detach() {
        Thread ends;
        synchronized (this) {
            ends = follower;
            follower = null;
            runner = null;
            held = null;
            cancel();
            if (line != null) {
                line.end();
            }
            ends = working == null && stops == 0 ? ends : null;
            notifyAll();
        }
        join(ends);
    }

    private static void join(Thread ends) {
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
            running = runner != null;
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
     * IllegalStateException: another run() has not ended yet.
     */
    public void run(Work work) throws Exception {
        begin();
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
            if (end()) {
                detach();
            }
        }
    }

    private synchronized void begin() {
        if (runner != null || working != null) {
            throw new IllegalStateException("another run() has not ended yet");
        }
        attach(); // where that fails nothing has changed
        runner = Thread.currentThread();
    }

    /** True: the attachment is still its own, to be ended. */
    private synchronized boolean end() {
        Thread mine = Thread.currentThread();
        if (working != null && working.thread == mine) {
            workEnded(working);
        }
        return runner == mine; // until detach(), so that no other one begins in between
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
                    long left = held != null && held.token == token ? heldLeftNs() - graceNs : 0;
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
    }

    private synchronized Leadership next() throws InterruptedException {
        while (!closed && runner == Thread.currentThread()) {
            if (heldLeftNs() > graceNs + marginNs) {
                working = new Leadership(held.token, graceNs);
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
        if (revoked != 0 && working == null && stops == 0 && line != null) {
            line.say("done " + revoked);
            told = null;
        }
    }

    private void follow(Thread before) {
        Thread mine = Thread.currentThread();
        join(before); // something still works by what that was told
        while (follows(mine)) {
            Line attached = null;
            try {
                attached = new Line(path, "attach " + election, timeoutNs);
                converse(attached, mine);
            } catch (IOException e) {
                // The end of the connection means: not leader.
            } catch (RuntimeException | Error e) { // no memory, say: not leader, but not for ever
                report(e);
            }
            waitForWork(attached, mine);
            if (attached != null) {
                attached.close();
            }
            pause(AGAIN_MS);
        }
    }

    /**
     * The end of a connection says that nothing works any more, and a new one would vouch for what
     * does: neither before that is so, whatever has gone wrong.
     */
    private synchronized void waitForWork(Line attached, Thread mine) {
        line = null;
        held = null;
        revoked = 0;
        cancel();
        while (mayWork(attached, mine)) {
            waitHere(LOOK_MS);
        }
        told = null;
    }

    /**
     * By what was told on this connection. run() knows of its own work; of what else there is we
     * know only that it was told of the lease.
     */
    private boolean mayWork(Line attached, Thread mine) {
        boolean open = attached != null && !attached.gone;
        boolean knows = !open || follower != mine || (runner != null && onRevoke == null);
        return working != null || stops != 0 || (!knows && told != null && told.leftNs() > 0);
    }

    /** As if the thread had ended with it, which goes on. */
    private static void report(Throwable e) {
        Thread mine = Thread.currentThread();
        try {
            mine.getUncaughtExceptionHandler().uncaughtException(mine, e);
        } catch (RuntimeException | Error also) {
            return; // as where a thread has ended
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
            String heard = attached.readOrNull(Math.min(untilLookNs(),
                beatEveryNs == 0 ? Long.MAX_VALUE : Math.max(beatAt - System.nanoTime(), MS)));
            Matcher beat = BEAT.matcher(heard == null ? "" : heard);
            if (beat.matches()) {
                beatEveryNs = number(beat, 1) * MS / 4;
                beatAt = System.nanoTime();
            } else if (heard != null) {
                hear(heard, mine);
            }
            if (beatEveryNs != 0 && System.nanoTime() - beatAt >= 0) {
                beatAt = System.nanoTime() + beatEveryNs;
                synchronized (this) {
                    attached.say("beat");
                }
            }
        }
    }

    /** Cancels the work in time. Work may also begin while we sleep. */
    private synchronized long untilLookNs() {
        long leftNs = working != null && !working.over ? working.leftNs() : Long.MAX_VALUE;
        return held == null || leftNs <= 0 ? Long.MAX_VALUE : Math.min(leftNs, LOOK_MS * MS);
    }

    private synchronized void hear(String heard, Thread mine) {
        Matcher lease = LEASE.matcher(heard);
        Matcher revoke = REVOKE.matcher(heard);
        if (follower != mine) {
            return;
        }
        if (lease.matches() && number(lease, 1) != revoked) {
            long ttlNs = number(lease, 4) * MS;
            held = told = pushed(lease);
            graceNs = Math.min(Math.max(ttlNs / 10, 1000 * MS), ttlNs / 5);
            if (working != null && working.token != number(lease, 1)) {
                cancel();
            }
            notifyAll();
        } else if (revoke.matches()) {
            revoked = number(revoke, 1);
            held = null;
            cancel();
            if (stopper != null && stops == 0) {
                stops = revoked;
                notifyAll();
            } else if (runner != null) {
                done();
            }
        }
    }

    private void serve() {
        for (long token = nextStop(); token != 0; token = nextStop()) {
            boolean stopped = false; // an error of onRevoke is no `done`: the lease then runs out
            try {
                onRevoke.accept(token);
                stopped = true;
            } catch (Throwable e) {
                report(e);
            }
            Thread.interrupted(); // whatever of that it has left
            hasStopped(token, stopped);
        }
    }

    /** The token for which onRevoke is to be called; 0: the attachment has ended. */
    private synchronized long nextStop() {
        while (follower != null && stops == 0) {
            waitHere(0);
        }
        stopper = stops == 0 ? null : stopper;
        return stops;
    }

    private synchronized void hasStopped(long token, boolean stopped) {
        stops = revoked != token ? revoked : 0; // another one was revoked meanwhile
        if (stopped) {
            done();
        }
        notifyAll();
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

    private static Thread thread(String name, Runnable code) {
        Thread thread = new Thread(code, name);
        thread.setDaemon(true);
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
        private volatile boolean gone; // the sidecar has ended it

        Line(Path path, String verb, long timeoutNs) throws IOException {
            channel = SocketChannel.open(StandardProtocolFamily.UNIX);
            selector = selectorFor(channel);
            try {
                channel.configureBlocking(false);
                connect(path, System.nanoTime() + timeoutNs);
                channel.register(selector, SelectionKey.OP_READ);
                send(verb.strip());
            } catch (IOException | RuntimeException | Error e) {
                close();
                throw e;
            }
        }

        /** Nobody else could give the channel back: an application may be at its limit of them. */
        private static Selector selectorFor(SocketChannel channel) throws IOException {
            try {
                return Selector.open();
            } catch (IOException | RuntimeException | Error e) {
                channel.close();
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

        /**
         * One that is not taken is as if it had not been said: there are hundreds before it that
         * the sidecar has not read, and the end of an attachment would say that all work has
         * stopped.
         */
        void say(String text) {
            try {
                send(text);
            } catch (IOException e) {
                return; // if the sidecar has gone, whoever reads sees it
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
                int got = ended ? -1 : receive();
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

        private int receive() throws IOException {
            gone = true; // unless it goes well
            int got = channel.read(bytes);
            gone = got < 0;
            return got;
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

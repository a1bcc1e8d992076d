import gavel.Gavel;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.OptionalLong;
import java.util.concurrent.Semaphore;
import java.util.stream.Collectors;

/** Speaks the line protocol of ../languages.py with the client for Java: Program SOCKET ELECTION */
public final class Program {
    private static final Semaphore FINISH = new Semaphore(0);
    private static final Semaphore GO = new Semaphore(0); // onRevoke may return

    private static final boolean THROWS = System.getenv("THROWS") != null; // every callback fails

    private Program() {
    }

    private static synchronized void say(Object... words) {
        System.out.println(Arrays.stream(words).map(String::valueOf).collect(Collectors.joining(" ")));
        System.out.flush();
    }

    private static void revoked(long token) {
        sayAndThrow("revoked", token, nowNs());
        if (System.getenv("SLOW") != null) {
            GO.acquireUninterruptibly();
        }
    }

    private static void churn(Gavel gavel) throws InterruptedException {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int j = 0; j < 25; j++) {
                    gavel.attach(Program::revoked);
                    gavel.detach();
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        say("churned");
    }

    private static void sayAndThrow(Object... words) {
        say(words);
        if (THROWS) {
            throw new IllegalStateException(words[0].toString());
        }
    }

    private static long nowNs() {
        try {
            String text = Files.readString(Path.of("/proc/uptime"));
            return Long.parseLong(text.substring(0, text.indexOf(' ')).replace(".", "")) * 10_000_000;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static String text(OptionalLong token) {
        return token.isPresent() ? Long.toString(token.getAsLong()) : "-";
    }

    private static void work(Gavel.Leadership leadership) {
        say("started", leadership.token(), nowNs());
        boolean finished = false;
        try {
            FINISH.acquire();
            finished = true;
        } catch (InterruptedException e) {
            say(leadership.cancelled() ? "cancelled" : "interrupted", leadership.token(), nowNs());
        }
        if (!finished) {
            FINISH.acquireUninterruptibly();
        }
        say("stopped", leadership.token(), nowNs());
    }

    public static void main(String[] arguments) throws Exception {
        if (THROWS) {
            Thread.setDefaultUncaughtExceptionHandler((thread, e) -> say("failed"));
        }
        Gavel gavel = new Gavel(Path.of(arguments[0]), arguments.length > 1 ? arguments[1] : "");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            switch (line) {
                case "is_leader" -> say("is_leader", gavel.isLeader());
                case "token" -> say("token", text(gavel.token()));
                case "require" -> {
                    try {
                        say("require", gavel.requireLeader());
                    } catch (Gavel.NotLeader e) {
                        say("require", "not-leader");
                    }
                }
                case "watch" -> gavel.onChange((leader, token) -> sayAndThrow("change", leader, text(token)));
                case "attach" -> {
                    try {
                        gavel.attach(Program::revoked);
                    } catch (OutOfMemoryError e) {
                        say("cannot");
                    }
                }
                case "detach" -> {
                    gavel.detach();
                    say("detached");
                }
                case "run" -> {
                    Thread thread = new Thread(() -> run(gavel));
                    thread.setDaemon(true);
                    thread.start();
                }
                case "run_here" -> { // no thread is needed for it
                    try {
                        run(gavel);
                    } catch (OutOfMemoryError e) {
                        say("cannot");
                    }
                }
                case "attach_only" -> gavel.attach();
                case "finish" -> FINISH.release();
                case "go" -> GO.release();
                case "churn" -> churn(gavel);
                default -> throw new IllegalArgumentException(line);
            }
        }
    }

    private static void run(Gavel gavel) {
        try {
            boolean[] worked = {false};
            gavel.run((leadership) -> {
                work(leadership);
                worked[0] = true;
            });
            say(worked[0] ? "returned" : "refused");
        } catch (IllegalStateException e) {
            say("refused", e);
        } catch (Exception e) {
            say("failed", e);
        }
    }
}

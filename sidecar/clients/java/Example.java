import gavel.Gavel;

public class Example {
    public static void main(String[] arguments) {
        Gavel gavel = new Gavel();
        gavel.token().ifPresent(token -> System.out.println("write with " + token));
    }
}

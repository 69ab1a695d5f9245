import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Scanner;
import java.util.TreeSet;

/** For each name on standard input that is a type of the JDK: the name and all methods that a subtype inherits. */
class LibraryMethods {
    public static void main(String[] arguments) {
        for (var names = new Scanner(System.in); names.hasNextLine();) {
            String name = names.nextLine();
            try {
                Class<?> type = Class.forName(name, false, ClassLoader.getPlatformClassLoader());
                System.out.println(name + " " + String.join(" ", methods(type)));
            } catch (ClassNotFoundException | LinkageError unknown) {
                // The answer has no line for it.
            }
        }
    }

    private static TreeSet<String> methods(Class<?> type) {
        var methods = new TreeSet<String>();
        var waiting = new ArrayDeque<Class<?>>(List.of(type));
        while (!waiting.isEmpty()) {
            Class<?> next = waiting.pop();
            for (Method method : next.getDeclaredMethods()) {
                if ((method.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED)) != 0) {
                    methods.add(method.getName());
                }
            }
            waiting.addAll(List.of(next.getInterfaces()));
            if (next.getSuperclass() != null) {
                waiting.add(next.getSuperclass());
            }
        }
        return methods;
    }
}

// Code in colours: what the parts of a line are, that they can be read in both themes, and that long texts stay quick.
#include "ui/models/syntax.h"

#include <QApplication>
#include <QScrollBar>
#include <QTextBlock>
#include <QTextLayout>
#include <QtTest>

#include "tests/support/suites.h"
#include "tests/ui/contrast.h"
#include "ui/graph/graph_colors.h"
#include "ui/windows/code_view.h"
#include "ui/windows/theme.h"

using namespace cutaway;
using namespace cutaway::ui;
using testing::blended;
using testing::contrast;

class SyntaxTest : public QObject {
    Q_OBJECT

    static QString said(const QString& line, Language language, LineState& state) {
        static const char* const kNames[] = {"keyword", "call", "type", "number", "string", "comment"};
        QStringList parts;
        for (const TokenRange& part : tokensOf(line, language, state))
            parts << QStringLiteral("%1 %2").arg(kNames[static_cast<int>(part.token)],
                                                 line.mid(part.start, part.length));
        return parts.join(" | ");
    }

  private slots:
    void linesAreTakenApart_data() {
        QTest::addColumn<Language>("language");
        QTest::addColumn<QString>("line");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, Language language, const char* line, const char* expected) {
            QTest::newRow(name) << language << QString(line) << QString(expected);
        };
        row("a call and its type", Language::Python, R"(    m: "f32[8, 16]" = aten.mm.default(x, t))",
            R"(type "f32[8, 16]" | call aten.mm.default)");
        row("a signature", Language::Python, R"(def forward(x: "f32[2, 3]"):)",
            R"(keyword def | call forward | type "f32[2, 3]")");
        row("values", Language::Python, "y = aten.add.Tensor(x, 1e-05, alpha = -2.5, out = None)",
            "call aten.add.Tensor | number 1e-05 | number 2.5 | keyword None");
        row("a dtype", Language::Python, "p = prims.convert_element_type.default(a, torch.float32)",
            "call prims.convert_element_type.default | type torch.float32");
        row("a string", Language::Python, R"(e = einsum('a\'b,c', x))", R"(call einsum | string 'a\'b,c')");
        row("a comment", Language::Python, "return (y,)  # of 3", "keyword return | comment # of 3");
        row("a name with digits is not a number", Language::Python, "mm_2 = x3", "");
        row("an open string ends with its line", Language::Python, "a = 'b", "string 'b");
        row("a rule", Language::Rules, "    replace_by_example", "keyword replace_by_example");
        row("C++", Language::Cpp, R"(static inline float f(const long i) { return x[i] * 0x1Fp3f; })",
            "keyword static | keyword inline | type float | call f | keyword const | type long | keyword return | "
            "number 0x1Fp3f");
        row("an include", Language::Cpp, "#include <cmath>", "keyword #include");
        row("a line comment", Language::Cpp, "x += 1; // the rest", "number 1 | comment // the rest");
        row("an empty line", Language::Cpp, "", "");
    }
    void linesAreTakenApart() {
        QFETCH(Language, language);
        QFETCH(QString, line);
        LineState state = kNothingOpen;
        QTEST(said(line, language, state), "expected");
        QCOMPARE(state, kNothingOpen);
    }

    void commentsAndStringsGoOnInTheNextLine() {
        LineState state = kNothingOpen;
        QCOMPARE(said("int a; /* one", Language::Cpp, state), "type int | comment /* one");
        QCOMPARE(said("return two", Language::Cpp, state), "comment return two");
        QCOMPARE(said("*/ return", Language::Cpp, state), "comment */ | keyword return");
        QCOMPARE(state, kNothingOpen);
        QCOMPARE(said("x = '''a", Language::Python, state), "string '''a");
        QCOMPARE(said("b''' + 1", Language::Python, state), "string b''' | number 1");
        QCOMPARE(state, kNothingOpen);
    }

    /// On plain ground, on every state of a difference, on the current line of each, and in the lists.
    void everyColorCanBeRead_data() {
        QTest::addColumn<int>("theme");
        QTest::newRow("light") << static_cast<int>(Theme::Light);
        QTest::newRow("dark") << static_cast<int>(Theme::Dark);
    }
    void everyColorCanBeRead() {
        QFETCH(int, theme);
        applyTheme(static_cast<Theme>(theme));
        const QPalette palette = QApplication::palette();
        const GraphColors states = GraphColors::of(palette);
        const SyntaxColors colors = SyntaxColors::of(palette);
        const QColor current = palette.color(QPalette::Highlight);
        QList<std::pair<QString, QColor>> grounds = {
            {"base", palette.color(QPalette::Base)},
            {"window", palette.color(QPalette::Window)},
            {"current line", blended(current, palette.color(QPalette::Base), 0.22)}};
        for (Change change : {Change::Added, Change::Removed, Change::Edited}) {
            grounds << std::pair(QString("state %1").arg(static_cast<int>(change)), states[change].fill);
            grounds << std::pair(QString("current line of state %1").arg(static_cast<int>(change)),
                                 blended(current, states[change].fill, 0.10));
            // What differs keeps the state's own ink on its mark.
            const QColor mark = blended(states[change].line, states[change].fill, 0.38);
            QVERIFY2(contrast(states[change].text, mark) >= 4.5,
                     qPrintable(QString("mark of state %1: %2")
                                    .arg(static_cast<int>(change))
                                    .arg(contrast(states[change].text, mark))));
        }
        for (const auto& [name, ground] : grounds)
            for (Token token :
                 {Token::Keyword, Token::Call, Token::Type, Token::Number, Token::String, Token::Comment}) {
                const double ratio = contrast(colors[token], ground);
                QVERIFY2(ratio >= 4.5,
                         qPrintable(QString("token %1 on %2: %3").arg(static_cast<int>(token)).arg(name).arg(ratio)));
            }
        applyTheme(Theme::Light);
    }

    void onlyWhatIsSeenIsColored() {
        CodeView view(Language::Cpp, "code", {});
        view.resize(500, 300);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        QStringList lines;
        for (int i = 0; i < 50000; ++i)
            lines << (i == 100     ? QStringLiteral("/* from here")
                      : i == 49000 ? QStringLiteral("to here */ return 1;")
                                   : QStringLiteral("    float x%1 = y[%1] * 2.0f;").arg(i));
        view.setCode(lines.join('\n'));
        const auto colored = [&](int line) {
            return view.document()->findBlockByNumber(line).layout()->formats().size();
        };
        QTRY_VERIFY(colored(0) > 0);
        QCOMPARE(colored(2000), 0);
        QCOMPARE(colored(49999), 0);
        view.verticalScrollBar()->setValue(2000);
        QTRY_COMPARE(colored(2001), 1);  // all of it is comment
        QCOMPARE(view.document()->findBlockByNumber(2001).layout()->formats().at(0).format.foreground().color(),
                 SyntaxColors::of(view.palette()).comment);
        view.verticalScrollBar()->setValue(view.verticalScrollBar()->maximum());
        QTRY_VERIFY(colored(49998) > 1);
        // Another theme has other colours.
        applyTheme(Theme::Dark);
        QTRY_COMPARE(view.document()->findBlockByNumber(49998).layout()->formats().at(0).format.foreground().color(),
                     SyntaxColors::of(QApplication::palette()).type);
        applyTheme(Theme::Light);
    }

    void richTextKeepsTheText() {
        const QString html =
            htmlOf("find\n  a = aten.relu.default(x) < 2", Language::Rules, SyntaxColors::of(QApplication::palette()));
        QTextDocument document;
        document.setHtml(html);
        QCOMPARE(document.toPlainText(), "find\n  a = aten.relu.default(x) < 2");
        QVERIFY(html.contains("color:"));
    }
};

CUTAWAY_SUITE(SyntaxTest)
#include "syntax_test.moc"

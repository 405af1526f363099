// Words for people: sizes, text on terminals, names that may have been meant; and which characters names are made of.
#include "cutaway/words.h"

#include <QtTest>

#include "engine/support/characters.h"
#include "tests/support/suites.h"

using namespace cutaway;

class WordsTest : public QObject {
    Q_OBJECT

  private slots:
    void bytes_data() {
        QTest::addColumn<qint64>("bytes");
        QTest::addColumn<QString>("text");
        const auto row = [](qint64 bytes, const char* text) { QTest::newRow(text) << bytes << text; };
        row(0, "0 B");
        row(1023, "1023 B");
        row(1024, "1.0 KiB");
        row(1536, "1.5 KiB");
        row(102400, "100 KiB");
        row(1048575, "1.0 MiB");
        row(5 * 1048576, "5.0 MiB");
        row(qint64(3) << 30, "3.0 GiB");
        row(qint64(5000) << 40, "4.9 PiB");
        row(-2048, "-2.0 KiB");
    }
    void bytes() {
        QFETCH(qint64, bytes);
        QTEST(QString::fromStdString(bytesText(bytes)), "text");
    }

    void visible_data() {
        QTest::addColumn<QByteArray>("given");
        QTest::addColumn<QByteArray>("shown");
        const auto row = [](const char* name, const QByteArray& given, const QByteArray& shown) {
            QTest::newRow(name) << given << shown;
        };
        row("plain", "conv_1", "conv_1");
        row("letters", "\xc3\xa9\xe5\xb1\x82\xf0\x9f\x98\x80", "\xc3\xa9\xe5\xb1\x82\xf0\x9f\x98\x80");
        row("escape", "a\x1b[31mb", "a\\x1b[31mb");
        row("line end", "a\nb\tc\r", "a\\x0ab\\x09c\\x0d");
        row("delete", "\x7f", "\\x7f");
        row("control of two bytes", "\xc2\x9b", "\\xc2\\x9b");
        row("raw bytes", "a\xff\xc3", "a\\xff\\xc3");
        row("longer than need be", "\xc0\x80", "\\xc0\\x80");
        row("surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80");
        row("beyond Unicode", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    }
    void visible() {
        QFETCH(QByteArray, given);
        QFETCH(QByteArray, shown);
        QCOMPARE(QByteArray::fromStdString(visibleText(given.toStdString())), shown);
    }
    void linesStayIfAsked() { QCOMPARE(visibleText("a\n\tb\r\x1b", true), std::string("a\n\tb\\x0d\\x1b")); }

    void clippingCutsNoCharacter() {
        QCOMPARE(std::string(clipped("a\xc3\xa9", 2)), std::string("a"));
        QCOMPARE(std::string(clipped("a\xc3\xa9", 3)), std::string("a\xc3\xa9"));
        QCOMPARE(std::string(clipped("\xf0\x9f\x98\x80", 3)), std::string());
    }

    void nameCharacters_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<int>("length");
        for (const char* letter : {"a", "Z", "_", "7"}) QTest::newRow(letter) << QByteArray(letter) << 1;
        for (const char* letter :
             {"\xc3\xa9", "\xd0\xaf", "\xce\xb1", "\xe5\xb1\x82", "\xe3\x81\x82", "\xed\x95\x9c", "\xf0\x9d\x91\xa5"})
            QTest::newRow(letter) << QByteArray(letter) << int(qstrlen(letter));
        for (const char* sign : {"", " ", "-", ".", "\xc2\xa0", "\xc3\x97", "\xe2\x80\xa6", "\xe2\x82\xac",
                                 "\xef\xbb\xbf", "\xf0\x9f\x98\x80", "\xff", "\xc3"})
            QTest::newRow(qPrintable("no " + QByteArray(sign).toHex())) << QByteArray(sign) << 0;
    }
    void nameCharacters() {
        QFETCH(QByteArray, text);
        QTEST(int(nameCharacter(text.toStdString())), "length");
    }

    void suggestions() {
        const std::vector<std::string_view> names = {"decompose", "functionalize", "remove_noop_ops"};
        QCOMPARE(suggestion("decompos", names), std::string("did you mean decompose?"));
        QCOMPARE(suggestion("xyz", names), std::string());
    }
};

CUTAWAY_SUITE(WordsTest)
#include "words_test.moc"

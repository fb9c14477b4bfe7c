package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for name, test := range map[string]struct {
		said string
		most int
		want string
	}{
		"what is harmless stays":                      {"pod \"web\" is waiting: größer als 3 €", 100, "pod \"web\" is waiting: größer als 3 €"},
		"lines become one":                            {"  first\r\n\tsecond\n\n", 100, "first second"},
		"a long text is cut and says so":              {"0123456789", 8, "01234..."},
		"a text that just fits is whole":              {"01234567", 8, "01234567"},
		"a character is not cut in two":               {"aaaaaä456", 8, "aaaaa..."},
		"no space stands before the dots":             {"aaaa bbbbbb", 8, "aaaa..."},
		"what replaces a character is not cut in two": {"aaa\u009b31mbbbb", 10, "aaa..."},
		"hardly any room":                             {"aaaa", 2, ".."},
		"no room":                                     {"aaaa", 0, ""},
		"bytes that are no UTF-8":                     {"a\xff\xfeb", 100, `a\xff\xfeb`},
		"the character for what is none stays":        {"a\ufffdb", 100, "a\ufffdb"},
		"escape sequences":                            {"\x1b[2J\x1b]8;;http://x\x07y", 100, `^[[2J^[]8;;http://x\u0007y`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Line(test.said, test.most); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFirstLine(t *testing.T) {
	if got, want := FirstLine("\n one\ttwo \nthree", 100), "one two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEscape(t *testing.T) {
	for name, test := range map[string]struct{ said, want string }{
		"lines and tabs stay":              {"a\tb\nc\n", "a\tb\nc\n"},
		"other languages stay":             {"größer ✓ … 日本語 👩\u200d🚀", "größer ✓ … 日本語 👩\u200d🚀"},
		"sequences that begin with ESC":    {"\x1b[31mred\x1b[0m", "^[[31mred^[[0m"},
		"sequences of 8 bits":              {"\u009b31mred", `\u009b31mred`},
		"the same as a byte":               {"\x9b31mred", `\x9b31mred`},
		"links":                            {"\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", `^[]8;;http://evil^[\text^[]8;;^[\`},
		"what overwrites the line":         {"bad\rgood", `bad\rgood`},
		"what goes back, rings and erases": {"a\bb\ac\x7f", `a\u0008b\u0007c\u007f`},
		"what tabwriter obeys":             {"a\vb\fc", `a\u000bb\u000cc`},
		"what turns the writing":           {"user\u202enimda\u2066\u200f", `user\u202enimda\u2066\u200f`},
		"other ends of lines":              {"a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`},
		"what is not seen":                 {"a\ufeffb\U000e0041", `a\ufeffb\udb40\udc41`},
		"bytes that are no UTF-8":          {"\xc3(", `\xc3(`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Escape(test.said); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func harmless(t *testing.T, got string, but string) {
	t.Helper()
	if !utf8.ValidString(got) {
		t.Errorf("%q is not valid UTF-8", got)
	}
	if i := strings.IndexFunc(got, func(r rune) bool { return obeyed(r) && !strings.ContainsRune(but, r) }); i >= 0 {
		t.Errorf("%q has %q", got, got[i:])
	}
}

func FuzzLine(f *testing.F) {
	for _, seed := range []string{"", "a b\nc", "\x1b[2J\u202e\xff", "\u009b€\U000e0041 ", strings.Repeat("ä ", 50)} {
		f.Add(seed, 20)
	}
	f.Fuzz(func(t *testing.T, said string, most int) {
		got := Line(said, most)
		harmless(t, got, "")
		if len(got) > max(most, 0) {
			t.Errorf("%q has %d bytes, more than %d", got, len(got), most)
		}
		if again := Line(got, most); again != got {
			t.Errorf("a line of %q is %q", got, again)
		}
	})
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "a\tb\n", "\x1b]0;x\x07", "\u202e\xff\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		got := Escape(said)
		harmless(t, got, "\n\t")
		if again := Escape(got); again != got {
			t.Errorf("%q escaped again is %q", got, again)
		}
	})
}

package bounds

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestNesting(t *testing.T) {
	for name, test := range map[string]struct {
		sent string
		most int64
		want bool // it is within the bounds
	}{
		"flat":                                  {sent: `{"a":[1,"x"]}`, want: true},
		"as deep as may be":                     {sent: strings.Repeat("[", deepest) + strings.Repeat("]", deepest), want: true},
		"deeper":                                {sent: strings.Repeat(`{"a":`, deepest+1)},
		"10,000 lists":                          {sent: strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)},
		"brackets in texts nest nothing":        {sent: `{"a":"` + strings.Repeat(`[\"{`, 10_000) + `"}`, want: true},
		"events are counted one by one":         {sent: strings.Repeat(`{"a":"0123456789"}`+"\n", 100), most: 40, want: true},
		"an event that is too long":             {sent: `{"a":"0"}{"a":"` + strings.Repeat("0", 40) + `"}`, most: 40},
		"what never ends is too long, too":      {sent: strings.Repeat("0", 41), most: 40},
		"more ends than beginnings end nothing": {sent: strings.Repeat("]", 100) + "[]", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, part := range []int{1, 7, len(test.sent)} {
				n, err := &nesting{most: test.most}, error(nil)
				for rest := test.sent; rest != "" && err == nil; {
					next := min(part, len(rest))
					_, err = n.scan([]byte(rest[:next]))
					rest = rest[next:]
				}
				if exceeded := new(ExceededError); (err == nil) != test.want || err != nil && !errors.As(err, &exceeded) {
					t.Errorf("in parts of %d: %v, want within bounds %t", part, err, test.want)
				}
			}
		})
	}
}

func TestWhatIsNestedTooDeepIsLeftOutAndTheRestPasses(t *testing.T) {
	whole := strings.Repeat(`{"a":`, deepest-1) + "%s" + strings.Repeat("}", deepest-1)
	for name, test := range map[string]struct {
		sent, want string
		wantCut    int
	}{
		"nothing is too deep":         {sent: `{"a":["}"]}`, want: `{"a":["}"]}`},
		"a value among others":        {sent: fmt.Sprintf(whole, `[1,{"b":[2,"]"]},3]`), want: fmt.Sprintf(whole, `[1,0,3]`), wantCut: 1},
		"two of them":                 {sent: fmt.Sprintf(whole, `{"b":[],"c":{},"d":"[{"}`), want: fmt.Sprintf(whole, `{"b":0,"c":0,"d":"[{"}`), wantCut: 2},
		"as deep as anybody may nest": {sent: fmt.Sprintf(whole, strings.Repeat("[", 9000)+strings.Repeat("]", 9000)), want: fmt.Sprintf(whole, `[0]`), wantCut: 1},
		"what follows one":            {sent: fmt.Sprintf(whole, `[[]]`) + "\n" + `{"b":1}`, want: fmt.Sprintf(whole, `[0]`) + "\n" + `{"b":1}`, wantCut: 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, part := range []int{1, 7, len(test.sent)} {
				cut, got := 0, ""
				n := &nesting{cut: func() { cut++ }}
				for rest := test.sent; rest != ""; {
					next := min(part, len(rest))
					passed, err := n.scan([]byte(rest[:next]))
					if err != nil {
						t.Fatal(err)
					}
					got, rest = got+string(passed), rest[next:]
				}
				if got != test.want || cut != test.wantCut {
					t.Errorf("in parts of %d: passed %q with %d left out, want %q with %d", part, got, cut, test.want, test.wantCut)
				}
			}
		})
	}
}

func frame(length int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(length)), make([]byte, length)...)
}

func TestFrames(t *testing.T) {
	for name, test := range map[string]struct {
		sent []byte
		want bool
	}{
		"frames of any number":         {append(frame(mostEvent), append(frame(0), frame(7)...)...), true},
		"one that is too long":         {append(frame(3), frame(mostEvent + 1)[:8]...), false},
		"one that is endless":          {[]byte{0xff, 0xff, 0xff, 0xff}, false},
		"one that is not whole, yet":   {frame(100)[:50], true},
		"a header that is not, either": {[]byte{0, 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, part := range []int{1, 3, len(test.sent)} {
				f, err := &frames{}, error(nil)
				for rest := test.sent; len(rest) > 0 && err == nil; {
					next := min(part, len(rest))
					_, err = f.scan(rest[:next])
					rest = rest[next:]
				}
				if (err == nil) != test.want {
					t.Errorf("in parts of %d: %v, want within bounds %t", part, err, test.want)
				}
			}
		})
	}
}

// FuzzNesting compares with a decoder: what that takes, and what is not deeper than the bound, passes.
func FuzzNesting(f *testing.F) {
	f.Add(`{"a":["\"]",{}]}`)
	f.Add(strings.Repeat("[", deepest+1))
	f.Fuzz(func(t *testing.T, sent string) {
		n := &nesting{}
		_, err := n.scan([]byte(sent))
		if !json.Valid([]byte(sent)) {
			return
		}
		cut := 0
		passed, cutErr := (&nesting{cut: func() { cut++ }}).scan([]byte(sent))
		if cutErr != nil || !json.Valid(passed) || (cut > 0) != (err != nil) || cut == 0 && string(passed) != sent {
			t.Errorf("of %q, with %d values left out, %q is passed on: %v, %v", sent, cut, passed, cutErr, err)
		}
		if err == nil && (n.depth != 0 || n.quoted) {
			t.Errorf("%q ends at depth %d, in a text %t", sent, n.depth, n.quoted)
		}
		if depth := strings.Count(sent, "[") + strings.Count(sent, "{"); err != nil && depth <= deepest {
			t.Errorf("%q is refused: %v", sent, err)
		}
	})
}

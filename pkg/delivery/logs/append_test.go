package logs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// blocks are some of one line each, from an index on.
func blocks(from int64, texts ...string) []Block {
	var out []Block
	for i, text := range texts {
		out = append(out, Block{Index: from + int64(i), Time: at(10 + i).Time, Text: text})
	}
	return out
}

// said are the lines of a log that somebody else has said.
func (w *world) said(t *testing.T) []string {
	t.Helper()
	lines, _ := w.lines(t)
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "| ") })
}

func TestWhatOthersSayIsToldOnceAndInOrder(t *testing.T) {
	first := Said{Stage: "a", Attempt: 1, Entry: 100, Blocks: blocks(1000, "one", "two")}
	for name, test := range map[string]struct {
		then []Said
		want []string
	}{
		"what follows":                                {then: []Said{{Stage: "a", Attempt: 1, Entry: 100, Blocks: blocks(1002, "three")}}, want: []string{"one", "two", "three"}},
		"all of it again, with what follows":          {then: []Said{{Stage: "a", Attempt: 1, Entry: 100, Blocks: blocks(1000, "one", "two", "three")}}, want: []string{"one", "two", "three"}},
		"nothing new":                                 {then: []Said{first, first}, want: []string{"one", "two"}},
		"nothing at all":                              {then: []Said{{Stage: "a", Attempt: 1, Entry: 100}}, want: []string{"one", "two"}},
		"more after the stage was left":               {then: []Said{{Stage: "a", Attempt: 1, Blocks: blocks(1001, "two", "three")}}, want: []string{"one", "two", "three"}},
		"the stage is entered again, and counts anew": {then: []Said{{Stage: "a", Attempt: 1, Entry: 200, Blocks: blocks(900, "again")}}, want: []string{"one", "two", "again"}},
		"what one says late who has lost the stage": {
			then: []Said{{Stage: "a", Attempt: 1, Entry: 200, Blocks: blocks(900, "again")}, {Stage: "a", Attempt: 1, Entry: 100, Blocks: blocks(1002, "late")}}, want: []string{"one", "two", "again"},
		},
		"the next attempt":          {then: []Said{{Stage: "a", Attempt: 2, Entry: 50, Blocks: blocks(1, "next")}, first}, want: []string{"one", "two", "next"}},
		"another stage":             {then: []Said{{Stage: "b", Attempt: 1, Entry: 50, Blocks: blocks(0, "other")}, {Stage: "b", Attempt: 1, Entry: 50, Blocks: blocks(0, "other")}, first}, want: []string{"one", "two", "other"}},
		"blocks out of their order": {then: []Said{{Stage: "a", Attempt: 1, Entry: 100, Blocks: append(blocks(1003, "four"), blocks(1002, "three")...)}}, want: []string{"one", "two", "four"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.show(t, release(nil))
			for _, said := range append([]Said{first}, test.then...) {
				c := w.controller(t) // which knows nothing of the others
				if err := c.Append(t.Context(), release(nil), said); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, line := range w.said(t) {
				_, text, _ := strings.Cut(line, "| ")
				got = append(got, text)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("told is %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatOthersSayAndWhatHappensAreToldInOneLog(t *testing.T) {
	w := newWorld()
	w.show(t, release(nil))
	one := w.controller(t)
	if err := one.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	other := w.controller(t)
	if err := other.Append(t.Context(), release(nil), Said{Stage: "a", Attempt: 1, Entry: 1, Blocks: blocks(1, "one\n\ntwo\x1b[31m\r\n")}); err != nil {
		t.Fatal(err)
	}
	// The first one finds that it was written, and so does who says something by it.
	w.show(t, release(func(s *v1alpha1.ReleaseStatus) { s.Stages[0].Message = "2 of 2 clusters" }))
	if err := one.sync(t.Context(), key); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if err := other.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if err := one.Append(t.Context(), release(nil), Said{Stage: "a", Attempt: 1, Entry: 1, Blocks: blocks(1, "one\ntwo", "three")}); err != nil {
		t.Fatal(err)
	}
	got, _ := w.lines(t)
	want := slices.Concat(first, []string{"0:10 a / | one", "0:10 a / | two^[[31m"}, []string{"10:00 a / K8S_PRIMARY_ROLLOUT Running: 2 of 2 clusters", "0:11 a / | three"})
	if !slices.Equal(got, want) {
		t.Errorf("told is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSomebodyElseWhoWritesHasTheRestToldByAnotherTry(t *testing.T) {
	w := newWorld()
	w.show(t, release(nil))
	c, conflicts := w.controller(t), 2
	w.client.PrependReactor("create", "releaselogparts", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts < 0 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewAlreadyExists(v1alpha1.Resource("releaselogparts"), "x")
	})
	if err := c.Append(t.Context(), release(nil), Said{Stage: "a", Attempt: 1, Entry: 1, Blocks: blocks(1, "one")}); err != nil {
		t.Fatal(err)
	}
	if got := w.said(t); len(got) != 1 {
		t.Errorf("told is %q", got)
	}
}

func TestWhatOthersSayLeavesRoomForWhatHappens(t *testing.T) {
	w := newWorld()
	w.show(t, release(nil))
	c := w.controller(t)
	if err := c.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		flood := Said{Stage: "a", Attempt: 1, Entry: 1}
		for j := range 200 {
			flood.Blocks = append(flood.Blocks, Block{Index: int64(200*i + j), Time: now, Text: strings.Repeat("x", 1000)})
		}
		flood.Blocks[0].Text = strings.Repeat("y\n", 100_000)
		if err := c.Append(t.Context(), release(nil), flood); err != nil {
			t.Fatal(err)
		}
	}
	got, parts := w.lines(t)
	if parts > 6 || !strings.Contains(got[len(got)-1], "the rest of what it says is left out") || got[0] != first[0] {
		t.Errorf("%d parts, from %q to %q", parts, got[0], got[len(got)-1])
	}
	for _, line := range got {
		if len(line) > mostLine+50 {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
	// The next attempt has its say.
	if err := c.Append(t.Context(), release(nil), Said{Stage: "a", Attempt: 2, Entry: 2, Blocks: blocks(1, "next")}); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.lines(t); !strings.HasSuffix(got[len(got)-1], "| next") {
		t.Errorf("the last line is %q", got[len(got)-1])
	}
}

func TestTimesThatOthersSayAreTakenIfTheyCanBe(t *testing.T) {
	for want, said := range map[string]time.Time{"0:10": at(10).Time, "10:00": now.Add(time.Hour)} {
		for _, line := range linesOfBlock("a", Block{Time: said, Text: "x", Bad: true}, now) {
			if got := show([]v1alpha1.ReleaseLogLine{line})[0]; got != want+" a / | error: x" {
				t.Errorf("%q, want it at %s", got, want)
			}
		}
	}
	if line := linesOfBlock("a", Block{Time: metav1.Unix(1, 0).Time, Text: "x"}, now)[0]; !line.Time.Time.Equal(now) {
		t.Errorf("it is of %s", line.Time)
	}
}

func FuzzWhatIsToldCanBeRead(f *testing.F) {
	f.Add("1/2/3/4")
	f.Add("1/2/-3/4")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		part := &v1alpha1.ReleaseLogPart{Spec: v1alpha1.ReleaseLogPartSpec{Told: map[string]string{saidKey + "a": text}}}
		read := toldOf(part, "a")
		part.Spec.Told[saidKey+"a"] = fmt.Sprint(read)
		if again := toldOf(part, "a"); again != read {
			t.Errorf("%q is read as %v, and then as %v", text, read, again)
		}
	})
}

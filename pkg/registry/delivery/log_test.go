package delivery

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	typed "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
)

// logged is a server with a release, and what writes its log.
type logged struct {
	typed.DeliveryV1alpha1Interface
	release *v1alpha1.Release
}

func newLogged(t *testing.T) *logged {
	t.Helper()
	client, err := versioned.NewForConfig(api.Serve(t))
	if err != nil {
		t.Fatal(err)
	}
	l := &logged{DeliveryV1alpha1Interface: client.DeliveryV1alpha1()}
	l.release = l.makeRelease(t, "shop-1")
	return l
}

func (l *logged) makeRelease(t *testing.T, name string) *v1alpha1.Release {
	t.Helper()
	release, err := l.Releases("shop").Create(t.Context(), &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ReleaseSpec{Application: "shop", Revision: "shop-v1", TriggeredBy: v1alpha1.ReleaseTrigger{Cause: v1alpha1.CauseCommand}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func line(stage, target, cluster, message string) v1alpha1.ReleaseLogLine {
	return v1alpha1.ReleaseLogLine{Time: metav1.Unix(0, 0), Stage: stage, Target: target, Cluster: cluster, Message: message}
}

// part writes a part of the log.
func (l *logged) part(t *testing.T, number, first int64, lines ...v1alpha1.ReleaseLogLine) *v1alpha1.ReleaseLogPart {
	t.Helper()
	part, err := l.ReleaseLogParts("shop").Create(t.Context(), &v1alpha1.ReleaseLogPart{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", l.release.UID, number), Labels: map[string]string{v1alpha1.LabelReleaseUID: string(l.release.UID)}},
		Spec:       v1alpha1.ReleaseLogPartSpec{Release: l.release.Name, Number: number, First: first, Lines: lines},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return part
}

func (l *logged) more(t *testing.T, part *v1alpha1.ReleaseLogPart, ended bool, lines ...v1alpha1.ReleaseLogLine) *v1alpha1.ReleaseLogPart {
	t.Helper()
	part.Spec.Lines, part.Spec.Ended = append(part.Spec.Lines, lines...), ended
	part, err := l.ReleaseLogParts("shop").Update(t.Context(), part, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return part
}

// open reads the log as a client does.
func (l *logged) open(ctx context.Context, release, query string) (io.ReadCloser, error) {
	request := l.RESTClient().Get().Namespace("shop").Resource("releases").Name(release).SubResource("log")
	for _, pair := range strings.Fields(query) {
		key, value, _ := strings.Cut(pair, "=")
		request = request.Param(key, value)
	}
	return request.Stream(ctx)
}

func TestALogIsReadAsItWasWritten(t *testing.T) {
	l := newLogged(t)
	l.part(t, 3, 7, line("", "", "", "begins"), line("stage-0", "", "", "K8S_SYNC begins"))
	l.part(t, 4, 9, line("stage-0", "eu", "east", "Succeeded"), line("stage-1", "eu", "west", "Failed: \x1b[31m no\nmore"))
	other := &logged{l.DeliveryV1alpha1Interface, l.makeRelease(t, "shop-2")}
	other.part(t, 0, 0, line("", "", "", "of another release"))
	const (
		gone = "(7 lines before these are gone: logs have a bound)\n"
		at   = "1970-01-01T00:00:00Z "
	)
	for query, want := range map[string]string{
		"":                          gone + at + "begins\n" + at + "stage-0 K8S_SYNC begins\n" + at + "stage-0 eu/east Succeeded\n" + at + "stage-1 eu/west Failed: ^[[31m no more\n",
		"stage=stage-0":             gone + at + "stage-0 K8S_SYNC begins\n" + at + "stage-0 eu/east Succeeded\n",
		"target=eu stage=stage-1":   gone + at + "stage-1 eu/west Failed: ^[[31m no more\n",
		"target=east":               gone + at + "stage-0 eu/east Succeeded\n",
		"target=nowhere follow=0":   gone,
		"follow=false stage=a%2Fb ": gone,
	} {
		t.Run(query, func(t *testing.T) {
			stream, err := l.open(t.Context(), "shop-1", query)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			got, err := io.ReadAll(stream)
			if err != nil || string(got) != want {
				t.Errorf("got %q and error %v, want %q", got, err, want)
			}
		})
	}
	if _, err := l.open(t.Context(), "shop-9", ""); !apierrors.IsNotFound(err) {
		t.Errorf("a release that there is not: error %v", err)
	}
	if _, err := l.open(t.Context(), "shop-1", "follow=perhaps"); !apierrors.IsBadRequest(err) {
		t.Errorf("a query that makes no sense: error %v", err)
	}
}

func TestALogIsFollowedUntilTheReleaseHasEnded(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, l *logged, part *v1alpha1.ReleaseLogPart){
		"until it tells of that": func(t *testing.T, l *logged, part *v1alpha1.ReleaseLogPart) { l.more(t, part, true) },
		"until it is deleted": func(t *testing.T, l *logged, part *v1alpha1.ReleaseLogPart) {
			if err := l.ReleaseLogParts("shop").Delete(t.Context(), part.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogged(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			stream, err := l.open(ctx, "shop-1", "follow=true")
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			lines := bufio.NewScanner(stream)
			expect := func(want string) {
				t.Helper()
				if !lines.Scan() || !strings.HasSuffix(lines.Text(), want) {
					t.Fatalf("read %q and error %v, want %q", lines.Text(), lines.Err(), want)
				}
			}
			part := l.part(t, 0, 0, line("", "", "", "one"))
			expect("one")
			part = l.more(t, part, false, line("", "", "", "two"), line("", "", "", "three"))
			expect("two")
			expect("three")
			next := l.part(t, 1, 3, line("", "", "", "four"))
			expect("four")
			if err := l.ReleaseLogParts("shop").Delete(ctx, part.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err) // the oldest part goes
			}
			next = l.more(t, next, false, line("", "", "", "five"))
			expect("five")
			end(t, l, next)
			if lines.Scan() || lines.Err() != nil {
				t.Errorf("read %q and error %v, want the end", lines.Text(), lines.Err())
			}
		})
	}
}

func TestWhoReadsNoMoreIsNotWrittenTo(t *testing.T) {
	l := newLogged(t)
	l.part(t, 0, 0, line("", "", "", "one"))
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := l.open(ctx, "shop-1", "follow=true")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := bufio.NewReader(stream).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(stream); err == nil {
		t.Error("the stream has an end of its own")
	}
}

func TestLinesThatAreThereStay(t *testing.T) {
	l := newLogged(t)
	part := l.part(t, 0, 0, line("", "", "", "one"), line("", "", "", "two"))
	for name, change := range map[string]func(*v1alpha1.ReleaseLogPart){
		"a line is dropped": func(p *v1alpha1.ReleaseLogPart) { p.Spec.Lines = p.Spec.Lines[:1] },
		"a line is changed": func(p *v1alpha1.ReleaseLogPart) { p.Spec.Lines[1].Message = "three" },
		"the part moves":    func(p *v1alpha1.ReleaseLogPart) { p.Spec.First = 9 },
		"a line without bounds": func(p *v1alpha1.ReleaseLogPart) {
			p.Spec.Lines = append(p.Spec.Lines, line("", "", "", strings.Repeat("x", 2000)))
		},
	} {
		changed := part.DeepCopy()
		change(changed)
		if _, err := l.ReleaseLogParts("shop").Update(t.Context(), changed, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: error %v, want it to be refused", name, err)
		}
	}
	l.more(t, part.DeepCopy(), false, line("", "", "", "three"))
	if _, err := l.ReleaseLogParts("shop").Update(t.Context(), part, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("who has not seen the last line: error %v, want a conflict", err)
	}
}

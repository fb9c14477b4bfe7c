package hostile

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/liar"
	"github.com/manifold-dev/manifold/hack/stock/process"
)

const mebibyte = 1 << 20

// storm is how many times more than by default is sent where the amount is what matters.
func storm(count int) int {
	if times, err := strconv.Atoi(os.Getenv("HOSTILE_STORM")); err == nil {
		return count * times
	}
	return count
}

const (
	// mostEventMessage is what is shown of the message of an event.
	mostEventMessage = 4 << 10
	// mostEvents is how many about one object are shown in the minutes that a test may take.
	mostEvents = 500
)

// TestAnEventStormHarmsNobodyElse has west tell of more than anybody can read, in words of any length.
func TestAnEventStormHarmsNobodyElse(t *testing.T) {
	a := enter(t)
	own := a.getIn(a.Environment.Physical["west"], deployments, a.Namespace, "own")
	var answers atomic.Int32
	now := time.Now().UTC().Format(time.RFC3339)
	stop := a.west.Answer(liar.Reads(schema.GroupResource{Resource: "events"}, "list", "watch"), func(w http.ResponseWriter, r *http.Request) {
		answers.Add(1)
		event := func(i int) []byte {
			message := "storm"
			if i%1000 == 0 {
				message = filler(mebibyte)
			}
			return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"storm-%d","namespace":%q,"resourceVersion":"%d","uid":"u-%d"},`+
				`"involvedObject":{"apiVersion":"apps/v1","kind":"Deployment","namespace":%q,"name":"own","uid":%q},"reason":"Storm","message":%q,"type":"Warning",`+
				`"lastTimestamp":%q}`, i, a.Namespace, i+1, i, a.Namespace, own.GetUID(), message, now)
		}
		// A list of more is not taken at all; what a watch goes on with has no end.
		inEach("v1", "Event", endless(20_000, event), endless(storm(20_000), event))(w, r)
	})
	defer stop()
	largest := a.watchMemory()
	a.west.End(schema.GroupResource{Resource: "events"})
	a.Logical.Poll("the storm has come", func() error {
		if answers.Load() == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	name := a.unique("canary")
	a.create(deployment(name, 1, "east"))
	framework.Await(a.Logical, name, "runs", expect.Available(1))
	// Of some the user is told, as of any other event; of all of them nobody could read.
	shown := framework.AwaitList(a.Logical, "", "the storm is told of", func(events []*corev1.Event) bool {
		return slices.ContainsFunc(events, func(e *corev1.Event) bool { return e.Reason == "Storm" })
	})
	for _, e := range shown {
		if len(e.Message) > mostEventMessage {
			t.Errorf("event %s has a message of %d bytes", e.Name, len(e.Message))
		}
	}
	most := largest()
	t.Logf("the server took %d MiB", most/mebibyte)
	if most > mostMemory {
		t.Errorf("the server took %d MiB", most/mebibyte)
	}
	stop()
	a.unharmed()
	list, err := a.Environment.Logical.Kube.CoreV1().Events(a.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Storm"})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) > mostEvents {
		t.Errorf("%d events of the storm are above, want no more than %d", len(list.Items), mostEvents)
	}
}

// watchMemory returns a function that ends the watch and returns the most memory that the server had meanwhile.
func (a *arena) watchMemory() (largest func() int64) {
	a.Helper()
	pid := a.Environment.Manifold.Process().PID()
	var most int64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if usage, err := process.UsageOf(pid); err == nil {
				most = max(most, usage.RSS)
			}
			select {
			case <-done:
				return
			case <-ticks():
			}
		}
	}()
	var once sync.Once
	end := func() { once.Do(func() { close(done); <-ended }) }
	a.Cleanup(end)
	return func() int64 { end(); return most }
}

// inEach answers lists of a kind by items, and watches by an event for each item, and for each of what is more.
func inEach(version, kind string, items func(func([]byte) bool), more ...func(func([]byte) bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		watch := query.Get("watch") != ""
		before := fmt.Sprintf(`{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"1"},"items":[`, version, kind)
		between, after := ",", "]}"
		if watch {
			before, between, after = "", "", ""
		}
		if query.Get("sendInitialEvents") == "true" {
			after = fmt.Sprintf(`{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1","annotations":{%q:"true"}}}}`,
				version, kind, metav1.InitialEventsAnnotationKey)
		}
		if _, err := io.WriteString(w, before); err != nil {
			return
		}
		first, got := true, true
		send := func(item []byte) bool {
			if !first {
				_, _ = io.WriteString(w, between) // the next write tells
			}
			first = false
			if watch {
				item = append(append([]byte(`{"type":"ADDED","object":`), item...), "}\n"...)
			}
			_, err := w.Write(item)
			got = err == nil
			return got
		}
		items(send)
		if !got {
			return
		}
		_, _ = io.WriteString(w, after) // nobody may listen any more
		if watch {
			for _, events := range more {
				events(send)
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
}

// endless returns as many items.
func endless(count int, item func(int) []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := range count {
			if !yield(item(i)) {
				return
			}
		}
	}
}

func filler(size int) string { return strings.Repeat("x", size) }

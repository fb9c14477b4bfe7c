package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
)

func TestAPluginIsReadyOnceItAnswers(t *testing.T) {
	w := newWorld(t)
	told := make(chan string, 1000)
	w.host.Changed(func(name string) { told <- name })
	w.add("a", &program{stages: []string{"B_SYNC", "A_SYNC", "A_SYNC"}, livestate: true}, func(s *Spec) {
		s.Targets = []plugins.Target{{Name: "here"}}
	})
	if _, why := w.host.Get("none"); why != `there is no plugin "none"` {
		t.Errorf("why: %q", why)
	}
	got := w.awaitReady("a")
	if !slices.Equal(got.Stages, []string{"A_SYNC", "B_SYNC"}) || !slices.Equal(got.Services, []string{"Deployment", "LiveState"}) || !slices.Equal(got.Targets, []string{"here"}) {
		t.Errorf("status %+v", got)
	}
	if got.Incarnation != 1 || got.Restarts != 0 || got.Sha256 != sum() || got.Generation != 1 || got.LastError != "" {
		t.Errorf("status %+v", got)
	}
	plugin, why := w.host.Get("a")
	if why != "" || plugin.Name != "a" || !slices.Equal(plugin.Stages, got.Stages) || plugin.Incarnation != 1 || len(plugin.Targets) != 1 {
		t.Errorf("plugin %+v, %q", plugin, why)
	}
	if offers := w.host.Offers("B_SYNC"); !slices.Equal(offers, []string{"a"}) {
		t.Errorf("offered by %v", offers)
	}
	if len(told) == 0 || <-told != "a" {
		t.Error("nobody was told")
	}
	p, _ := w.process("a")
	if !slices.Equal(p.args[:3], []string{"start", "--piped-plugin-service", "a:7000"}) {
		t.Errorf("it was started with %q", p.args)
	}
	if len(p.handled) > 0 {
		t.Error("code of the plugin has seen the request by which its services are found out")
	}
}

func TestWhatAPluginSaysIsChecked(t *testing.T) {
	many := make([]string, mostStages+1)
	for i := range many {
		many[i] = fmt.Sprintf("S%d", i)
	}
	for name, test := range map[string]struct {
		of   *program
		want string
	}{
		"too many stages":             {&program{stages: many}, "it names 65 stages"},
		"a name that is too long":     {&program{stages: []string{strings.Repeat("S", mostStage+1)}}, "no name of a stage"},
		"a name that terminals obey":  {&program{stages: []string{"A\x1b[31m"}}, `"A^[[31m" is no name`},
		"an empty name":               {&program{stages: []string{""}}, "no name of a stage"},
		"a name with blanks":          {&program{stages: []string{"A B"}}, "no name of a stage"},
		"an answer that is too large": {&program{stages: []string{strings.Repeat("x", 100<<20)}}, "larger than max"},
		"an error":                    {&program{refuses: status.Error(codes.Internal, "no \x07idea")}, `no \u0007idea`},
		"no service at all":           {&program{nothing: true}, "it serves none of the services of a plugin"},
		"nothing, ever":               {&program{deaf: true}, "has not answered on port"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add("a", test.of)
			w.eventually("it has failed", func() bool { return w.status("a").LastError != "" })
			got := w.status("a")
			if got.Ready || !strings.Contains(got.LastError, test.want) {
				t.Errorf("error %q, want %q", got.LastError, test.want)
			}
			if _, why := w.host.Get("a"); !strings.Contains(why, `plugin "a" is not ready`) {
				t.Errorf("why: %q", why)
			}
		})
	}
}

// A plugin may have any of the services.
func TestAPluginNeedsNoStages(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{nothing: true, livestate: true})
	if got := w.awaitReady("a"); len(got.Stages) > 0 || !slices.Equal(got.Services, []string{"LiveState"}) {
		t.Errorf("status %+v", got)
	}
}

func TestAPluginThatEndsIsStartedAgain(t *testing.T) {
	w := newWorld(t)
	of := w.add("a", &program{stages: []string{"A"}, executes: make(chan struct{})})
	w.awaitReady("a")
	call := w.execute("a")
	plugin, _ := w.host.Get("a")
	p, _ := w.process("a")
	p.end("was ended by signal SIGKILL")
	if err := <-call; !unavailable(err) {
		t.Errorf("a call that was in flight ends with %v", err)
	}
	w.eventually("it is back", func() bool { s := w.status("a"); return s.Ready && s.Incarnation == 2 })
	got := w.status("a")
	if got.Restarts != 1 || !strings.Contains(got.LastError, "was ended by signal SIGKILL") || got.LastErrorAt.IsZero() {
		t.Errorf("status %+v", got)
	}
	if err := plugin.Conn.Invoke(t.Context(), "/a/B", nil, nil); !unavailable(err) {
		t.Errorf("a call of the process that has gone ends with %v", err)
	}
	of.set(func(p *program) { p.exits = "exited with code 0" })
	p, _ = w.process("a")
	p.end("exited with code 0")
	got = w.awaitReason("a", v1alpha1.PluginReasonCrashLoop)
	if !strings.Contains(got.LastError, "exited with code 0, which nobody has asked it to") || !slices.Equal(w.host.Offers("A"), []string{"a"}) {
		t.Errorf("status %+v, offered by %v", got, w.host.Offers("A"))
	}
	of.set(func(p *program) { p.exits = "" })
	w.awaitReady("a")
}

func TestAPluginThatHangsIsNoticedAndStartedAgain(t *testing.T) {
	w := newWorld(t)
	of := w.add("a", &program{stages: []string{"A"}, executes: make(chan struct{})})
	w.awaitReady("a")
	call := w.execute("a")
	of.set(func(p *program) { p.hangs = make(chan struct{}) })
	hung := w.clock.Now()
	w.awaitReason("a", v1alpha1.PluginReasonNotAnswering)
	if took := w.clock.Since(hung); took > 5*time.Second {
		t.Errorf("it was noticed after %s", took)
	}
	w.eventually("its process is ended", func() bool { p, _ := w.process("a"); return isClosed(p.done) })
	of.set(func(p *program) { p.hangs = nil })
	if err := <-call; !unavailable(err) {
		t.Errorf("the call ends with %v", err)
	}
	w.eventually("it is back", func() bool { s := w.status("a"); return s.Ready && s.Incarnation == 2 })
	if took := w.clock.Since(hung); took > 15*time.Second {
		t.Errorf("it was back after %s", took)
	}
	if got := w.status("a"); got.Restarts != 1 || !strings.Contains(got.LastError, "has not answered for 7s") {
		t.Errorf("status %+v", got)
	}
}

// Who was held up is the server.
func TestAServerThatWasHeldUpEndsNoPlugin(t *testing.T) {
	w := newWorld(t)
	hangs := make(chan struct{})
	of := w.add("a", &program{stages: []string{"A"}})
	w.awaitReady("a")
	of.set(func(p *program) { p.hangs = hangs })
	w.eventually("it is asked", func() bool { p, _ := w.process("a"); return p.waits.Load() > 0 })
	w.clock.Step(time.Hour) // and the answer is not heard of yet
	w.awaitReason("a", v1alpha1.PluginReasonNotAnswering)
	of.set(func(p *program) { p.hangs = nil })
	close(hangs)
	if got := w.awaitReady("a"); got.Incarnation != 1 {
		t.Errorf("status %+v", got)
	}
}

// Calls go on: it may only be busy.
func TestAPluginThatAnswersAgainKeepsItsProcess(t *testing.T) {
	w := newWorld(t)
	of := w.add("a", &program{stages: []string{"A"}, executes: make(chan struct{})})
	w.awaitReady("a")
	call := w.execute("a")
	hangs := make(chan struct{})
	of.set(func(p *program) { p.hangs = hangs })
	w.awaitReason("a", v1alpha1.PluginReasonNotAnswering)
	of.set(func(p *program) { p.hangs = nil })
	close(hangs)
	if got := w.awaitReady("a"); got.Incarnation != 1 || got.Restarts != 0 {
		t.Errorf("status %+v", got)
	}
	close(of.executes)
	if err := <-call; err != nil {
		t.Errorf("the call ends with %v", err)
	}
}

func TestAPluginThatAnswersWronglyIsNotUsed(t *testing.T) {
	w := newWorld(t)
	of := w.add("a", &program{stages: []string{"A"}})
	w.awaitReady("a")
	of.set(func(p *program) { p.stages = []string{"no name"} })
	if got := w.awaitReason("a", v1alpha1.PluginReasonNotAnswering); !strings.Contains(got.Message, "no name of a stage") {
		t.Errorf("status %+v", got)
	}
	of.set(func(p *program) { p.stages = []string{"B"} })
	w.awaitReady("a")
	if len(w.host.Offers("A")) > 0 || len(w.host.Offers("B")) != 1 {
		t.Errorf("A is offered by %v, B by %v", w.host.Offers("A"), w.host.Offers("B"))
	}
}

func TestAProgramWithAnotherChecksumIsNotRun(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{}, func(s *Spec) { s.Sha256 = strings.Repeat("0", 64) })
	got := w.awaitReason("a", v1alpha1.PluginReasonChecksumDiffers)
	if _, starts := w.process("a"); starts != 0 || !strings.Contains(got.LastError, sum()) {
		t.Errorf("%d starts, status %+v", starts, got)
	}
	w.set("a", func(s *Spec) { s.Sha256 = sum() })
	w.awaitReady("a")

	// What lies on the disk is compared before each start.
	if err := os.WriteFile(w.file, []byte("another program"), 0o755); err != nil {
		t.Fatal(err)
	}
	p, starts := w.process("a")
	p.end("exited with code 1")
	w.awaitReason("a", v1alpha1.PluginReasonChecksumDiffers)
	if _, now := w.process("a"); now != starts {
		t.Errorf("it was started %d times, want %d", now, starts)
	}
}

func TestAProgramThatCannotBeFetchedIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.fetchErr = errNoNetwork
	w.add("a", &program{stages: []string{"A"}})
	if got := w.awaitReason("a", v1alpha1.PluginReasonFetchFailed); !strings.Contains(got.LastError, errNoNetwork.Error()) || got.Restarts != 0 {
		t.Errorf("status %+v", got)
	}
	w.mu.Lock()
	w.fetchErr = nil
	w.mu.Unlock()
	w.awaitReady("a")
}

func TestAChangeRestartsWhenCallsHaveEnded(t *testing.T) {
	w := newWorld(t)
	of := w.add("a", &program{stages: []string{"A"}, executes: make(chan struct{})})
	w.awaitReady("a")
	call := w.execute("a")
	first, _ := w.process("a")
	plugin, _ := w.host.Get("a")
	w.set("a", func(s *Spec) { s.Generation, s.Config = 2, []byte(`{"a":1}`) })
	w.awaitReason("a", v1alpha1.PluginReasonRestarting)
	if err := plugin.Conn.Invoke(t.Context(), "/a/B", nil, nil); !unavailable(err) {
		t.Errorf("a call of a plugin that is about to end ends with %v", err)
	}
	if isClosed(first.done) {
		t.Error("its process has ended, though a call is in flight")
	}
	close(of.executes)
	if err := <-call; err != nil {
		t.Errorf("the call in flight ends with %v", err)
	}
	w.eventually("it is back", func() bool { s := w.status("a"); return s.Ready && s.Generation == 2 })
	if got := w.status("a"); got.Restarts != 0 || got.Incarnation != 2 || got.LastError != "" {
		t.Errorf("status %+v", got)
	}
	if next, _ := w.process("a"); !strings.Contains(strings.Join(next.args, " "), `"config":{"a":1}`) {
		t.Errorf("it was started with %v", next.args)
	}
}

func TestACallHasTheGracePeriodToEnd(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A"}, executes: make(chan struct{})}, func(s *Spec) { s.Grace = 3 * time.Second })
	w.awaitReady("a")
	call := w.execute("a")
	w.set("a", func(s *Spec) { s.RestartFor = "now" })
	w.eventually("it is back", func() bool { s := w.status("a"); return s.Ready && s.Incarnation == 2 })
	if err := <-call; !unavailable(err) {
		t.Errorf("the call ends with %v", err)
	}
	if got := w.status("a"); got.RestartedFor != "now" {
		t.Errorf("status %+v", got)
	}
}

func TestWhatNeedsNoRestartHasNone(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A"}})
	w.awaitReady("a")
	w.set("a")
	w.set("a", func(s *Spec) { s.Grace, s.Generation = time.Second, 2 })
	w.eventually("the change is taken", func() bool { return w.status("a").Generation == 2 })
	if _, starts := w.process("a"); starts != 1 || !w.status("a").Ready {
		t.Errorf("it was started %d times", starts)
	}
	w.stop()
	w.eventually("the host ends", func() bool { return isClosed(w.ended) })
	if p, _ := w.process("a"); p.asked != time.Second {
		t.Errorf("it had %s to end, want that of the change", p.asked)
	}
}

func TestAFetchIsForcedOnce(t *testing.T) {
	w := newWorld(t)
	w.mu.Lock()
	w.programs["a"] = &program{stages: []string{"A"}}
	w.mu.Unlock()
	w.setSeen("a", Seen{RefetchedFor: "before", Incarnation: 7, Restarts: 3, Stages: []string{"OLD"}}, func(s *Spec) { s.RefetchFor = "before" })
	if got := w.awaitReady("a"); got.Incarnation != 8 || got.Restarts != 3 {
		t.Errorf("status %+v", got)
	}
	w.set("a", func(s *Spec) { s.RefetchFor = "now" })
	w.eventually("it is fetched", func() bool { s := w.status("a"); return s.Ready && s.RefetchedFor == "now" && s.Incarnation == 9 })
	p, _ := w.process("a")
	p.end("exited with code 1")
	w.eventually("it is back", func() bool { s := w.status("a"); return s.Ready && s.Incarnation == 10 })
	w.mu.Lock()
	defer w.mu.Unlock()
	if want := []string{"file:///program false", "file:///program true", "file:///program false"}; !slices.Equal(w.fetches, want) {
		t.Errorf("fetched %v, want %v", w.fetches, want)
	}
}

func TestASuspendedPluginDoesNotRun(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A"}}, func(s *Spec) { s.Suspend = true })
	w.awaitReason("a", v1alpha1.PluginReasonSuspended)
	w.set("a")
	w.awaitReady("a")
	w.set("a", func(s *Spec) { s.Suspend = true })
	w.awaitReason("a", v1alpha1.PluginReasonSuspended)
	if p, starts := w.process("a"); starts != 1 || !isClosed(p.done) {
		t.Errorf("it was started %d times", starts)
	}
}

func TestAPluginThatIsRemovedLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A"}})
	w.awaitReady("a")
	if err := os.MkdirAll(w.host.home("a"), 0o700); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{}, 1000)
	w.host.Changed(func(name string) {
		if _, known := w.host.Status(name); !known {
			gone <- struct{}{}
		}
	})
	w.host.Remove("a")
	w.eventually("others are told that it has gone", func() bool { return len(gone) > 0 })
	if offers := w.host.Offers("A"); len(offers) > 0 {
		t.Errorf("A is offered by %v", offers)
	}
	if p, _ := w.process("a"); !isClosed(p.done) {
		t.Error("its process runs")
	}
	if _, err := os.Stat(w.host.home("a")); !os.IsNotExist(err) {
		t.Errorf("its folder is there: %v", err)
	}
	w.eventually("its services are closed", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Equal(w.closed, []string{"a"})
	})
	w.set("a")
	w.awaitReady("a")
}

func TestFoldersOfPluginsThatAreNoMoreAreRemoved(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b"} {
		if err := os.MkdirAll(w.host.home(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.host.Keep([]string{"a"}, []string{sum()}); err != nil {
		t.Fatal(err)
	}
	if want := []string{fmt.Sprintf("keep [%s]", sum())}; !slices.Equal(w.fetches, want) {
		t.Errorf("programs: %v, want %v", w.fetches, want)
	}
	if _, err := os.Stat(w.host.home("a")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.host.home("b")); !os.IsNotExist(err) {
		t.Errorf("the folder of b: %v", err)
	}
}

func TestAStageThatTwoOfferIsToldOnBoth(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A", "X"}})
	w.add("b", &program{stages: []string{"B", "X"}})
	w.awaitReady("a")
	w.awaitReady("b")
	for name, other := range map[string]string{"a": "b", "b": "a"} {
		if got := w.status(name).Shared; len(got) != 1 || got[0].Stage != "X" || !slices.Equal(got[0].Plugins, []string{other}) {
			t.Errorf("%s shares %+v", name, got)
		}
	}
	if got := w.host.Offers("X"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("X is offered by %v", got)
	}
}

func TestAPortIsOfOnePlugin(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A"}})
	w.awaitReady("a")
	w.host.mu.Lock()
	port := w.host.ports["a"]
	w.host.mu.Unlock()
	w.add("b", &program{stages: []string{"B"}}, func(s *Spec) { s.Port = port })
	if got := w.awaitReason("b", v1alpha1.PluginReasonRefused); !strings.Contains(got.Message, "find a port") && !strings.Contains(got.Message, `is that of plugin "a"`) {
		t.Errorf("status %+v", got)
	}
	if !w.status("a").Ready {
		t.Error("the other one has suffered")
	}
	// One that does not run has none.
	w.set("a", func(s *Spec) { s.Suspend = true })
	w.awaitReason("a", v1alpha1.PluginReasonSuspended)
	w.awaitReady("b")
}

func TestAPluginThatFailsHarmsNoOther(t *testing.T) {
	w := newWorld(t)
	w.add("good", &program{stages: []string{"GOOD"}})
	w.add("loops", &program{exits: "exited with code 0"})
	w.add("floods", &program{stages: []string{strings.Repeat("x", 100<<20)}})
	w.awaitReason("loops", v1alpha1.PluginReasonCrashLoop)
	w.eventually("the other has failed", func() bool { return w.status("floods").LastError != "" })
	if got := w.awaitReady("good"); got.Restarts != 0 || got.Incarnation != 1 {
		t.Errorf("status %+v", got)
	}
}

func TestTheHostEndsWithItsPlugins(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A"}})
	w.add("b", &program{exits: "exited with code 1"})
	w.awaitReady("a")
	w.stop()
	w.eventually("the host ends", func() bool { return isClosed(w.ended) })
	if p, _ := w.process("a"); !isClosed(p.done) || p.asked != stopGrace {
		t.Errorf("it was given %s", p.asked)
	}
	if _, why := w.host.Get("a"); !strings.Contains(why, "the server stops") {
		t.Errorf("why: %q", why)
	}
}

func TestDelaysGrowToABound(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 500 * time.Millisecond, 2: time.Second, 3: 2 * time.Second, 7: 32 * time.Second, 8: time.Minute, 1000: time.Minute} {
		if got := delay(failures); got != want {
			t.Errorf("delay after %d is %s, want %s", failures, got, want)
		}
	}
}

func TestFilesChangeWithoutARestart(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A"}}, func(s *Spec) { s.Files = map[string]string{"east.kubeconfig": "one"} })
	w.awaitReady("a")
	has := func(want string) func() bool {
		return func() bool {
			got, err := os.ReadFile(filepath.Join(w.host.Folder("a"), "east.kubeconfig"))
			return err == nil && string(got) == want
		}
	}
	if !has("one")() {
		t.Error("the file is not there")
	}
	w.set("a", func(s *Spec) { s.Files = map[string]string{"east.kubeconfig": "two"} })
	w.eventually("the file changes", has("two"))
	if got := w.status("a"); !got.Ready || got.Incarnation != 1 {
		t.Errorf("status %+v", got)
	}
}

func TestFilesThatAPluginIsToHaveNoMoreGo(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A"}}, func(s *Spec) { s.Files = map[string]string{"east.token": "one", "west.token": "two"} })
	w.awaitReady("a")
	gone := func(name string) func() bool {
		return func() bool {
			_, err := os.Stat(filepath.Join(w.host.Folder("a"), name))
			return os.IsNotExist(err)
		}
	}
	if gone("east.token")() || gone("west.token")() {
		t.Error("the files are not there")
	}
	w.set("a", func(s *Spec) { s.Files = map[string]string{"west.token": "two"} })
	w.eventually("the file goes", gone("east.token"))
	if gone("west.token")() {
		t.Error("the other one went, too")
	}
	w.set("a", func(s *Spec) { s.Targets = []plugins.Target{{Name: "here"}} })
	w.eventually("the next process has none", gone("west.token"))
}

func TestAPluginThatCannotBeRunSaysWhy(t *testing.T) {
	w := newWorld(t)
	w.add("a", &program{stages: []string{"A"}}, func(s *Spec) { s.Problem = "two targets are named east" })
	if got := w.awaitReason("a", v1alpha1.PluginReasonRefused); got.Message != "two targets are named east" {
		t.Errorf("status %+v", got)
	}
	w.set("a")
	w.awaitReady("a")
}

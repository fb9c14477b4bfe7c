package host

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
)

// A plugin that hangs is noticed askEvery and askPatience after it last answered, is ended silentLimit later, and is back after the grace period for what hangs and the time that it
// takes to start.
const (
	// startPatience is how long a process has until it answers.
	startPatience = 30 * time.Second
	// askEvery is how often a plugin is asked whether it answers, and askAgain how soon after it has answered wrongly.
	askEvery = time.Second
	askAgain = 500 * time.Millisecond
	// askPatience is how long it has to answer until it is not used any more.
	askPatience = 2 * time.Second
	// silentLimit is how long it may be seen not to answer until it is ended. It begins when that is seen, since a server that was itself held up hears late of answers.
	silentLimit = 4 * time.Second
	hangGrace   = time.Second
	// stopGrace bounds how long the stop of the server waits for plugins, whatever their own grace periods.
	stopGrace = 10 * time.Second
)

// life is that of one process.
type life struct {
	*supervisor
	spec    Spec
	process Running
	port    int32
	user    *process.User
	conn    *grpc.ClientConn
	gate    *gate
	output  *process.Output

	timer   clock.Timer
	answers chan answer
	asking  bool
	// since is when it first answered, and silence since when it was seen not to; zero unless it has or does.
	since, silence time.Time
	services       []string
}

// answer is what a plugin has said when it was asked.
type answer struct {
	stages, services []string
	err              error
}

// watch goes on until the process has ended. It ends the process when that does not answer, when something else is wanted, and when ctx ends.
func (l *life) watch(ctx context.Context) end {
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		cancel()
		if l.asking {
			<-l.answers
		}
		l.show(nil)
		_ = l.conn.Close()
	}()
	l.timer = l.host.Clock.NewTimer(startPatience)
	defer l.timer.Stop()
	l.ask(asking)
	for {
		select {
		case <-ctx.Done():
			return l.stop("the server stops", min(l.spec.Grace, stopGrace))
		case <-l.process.Done():
			return l.exited()
		case <-l.changed:
			if l.differs() {
				return l.drain(ctx)
			}
			if err := l.write(l.user, l.spec.Files); err != nil {
				return l.giveUp(err.Error())
			}
		case said := <-l.answers:
			l.asking = false
			if failure := l.heard(said); failure != "" {
				return l.giveUp(failure)
			}
		case <-l.timer.C():
			if failure := l.late(asking); failure != "" {
				return l.giveUp(failure)
			}
		}
	}
}

// show lets others use the process, or not.
func (l *life) show(gate *gate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.supervisor.gate = gate
}

// differs reports whether what is wanted by now needs another process.
func (l *life) differs() bool {
	next := l.wanted()
	if next == nil {
		return true
	}
	if !sameProcess(l.spec, *next) {
		return true
	}
	l.spec = *next
	l.note(func(*Status) {})
	return false
}

// ask asks the plugin for its stages, the first time also for its services.
func (l *life) ask(ctx context.Context) {
	l.asking = true
	first := l.since.IsZero()
	go func() {
		stages, serves, err := fetchStages(ctx, l.conn, first)
		out := answer{stages: stages, err: err}
		if err == nil && first {
			out.services, out.err = fetchServices(ctx, l.conn, serves)
		}
		l.answers <- out
	}()
}

// heard takes an answer. It returns why the process has to be ended.
func (l *life) heard(said answer) string {
	now := l.host.Clock.Now()
	if said.err == nil {
		if err := process.ListensAs(l.port, l.user); err != nil {
			said.err = err
		}
	}
	if said.err != nil {
		if l.since.IsZero() {
			return said.err.Error()
		}
		l.timer.Reset(askAgain)
		return l.silent(said.err.Error())
	}
	if l.since.IsZero() {
		l.since, l.services = now, said.services
		l.output.Note("answers")
	}
	l.silence = time.Time{}
	l.timer.Reset(askEvery)
	l.show(l.gate)
	l.note(func(of *Status) {
		of.Ready, of.Reason, of.Message = true, v1alpha1.PluginReasonAnswering, fmt.Sprintf("process %d answers on port %d", l.process.PID(), l.port)
		of.Stages, of.Services = said.stages, l.services
	})
	return ""
}

// late is called when the plugin is to be asked, or has not answered in time.
func (l *life) late(ctx context.Context) string {
	switch {
	case !l.asking:
		l.ask(ctx)
		l.timer.Reset(askPatience)
		return ""
	case l.since.IsZero():
		return fmt.Sprintf("it has not answered on port %d within %s of its start", l.port, startPatience)
	}
	l.timer.Reset(silentLimit)
	return l.silent("no answer to FetchDefinedStages")
}

// silent shows that the plugin does not answer, and returns why it has to be ended once that has lasted too long.
func (l *life) silent(why string) string {
	if l.silence.IsZero() {
		l.silence = l.host.Clock.Now()
	}
	if l.host.Clock.Since(l.silence) >= silentLimit {
		return fmt.Sprintf("it has not answered for %s: %s", askEvery+askPatience+silentLimit, why)
	}
	l.note(func(of *Status) {
		of.Ready, of.Reason, of.Message = false, v1alpha1.PluginReasonNotAnswering, why
	})
	return ""
}

// giveUp ends a process that is of no use.
func (l *life) giveUp(why string) end {
	l.note(func(of *Status) { of.Ready, of.Reason, of.Message = false, v1alpha1.PluginReasonNotAnswering, why })
	l.output.Note("ended: " + why)
	l.stop(why, hangGrace)
	return end{reason: v1alpha1.PluginReasonNotAnswering, message: why + wrote(l.output), well: l.well()}
}

// drain lets calls end, and ends the process.
func (l *life) drain(ctx context.Context) end {
	const why = "it is restarted, since the Plugin has changed"
	idle := l.gate.close(why)
	l.note(func(of *Status) {
		of.Ready, of.Reason, of.Message = false, v1alpha1.PluginReasonRestarting, fmt.Sprintf("%s; %d calls may end before", why, l.gate.inside())
	})
	timer := l.host.Clock.NewTimer(l.spec.Grace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C():
	case <-l.process.Done():
	case <-ctx.Done():
	}
	return l.stop(why, min(l.spec.Grace, stopGrace))
}

// stop ends the process because somebody has asked for it.
func (l *life) stop(why string, grace time.Duration) end {
	l.gate.close(why)
	l.note(func(of *Status) {
		if of.Ready {
			of.Ready, of.Reason, of.Message = false, v1alpha1.PluginReasonRestarting, why
		}
	})
	l.process.Stop(grace)
	l.output.Note("stopped: " + why + "; " + l.process.Exit().Said)
	return end{asked: true}
}

// exited is for a process that has ended though nobody has asked it to.
func (l *life) exited() end {
	said := l.process.Exit().Said
	l.gate.close("its process " + said)
	l.output.Note(said)
	return end{reason: v1alpha1.PluginReasonExited, message: "the process " + said + ", which nobody has asked it to" + wrote(l.output), well: l.well()}
}

func (l *life) well() time.Duration {
	if l.since.IsZero() {
		return 0
	}
	return l.host.Clock.Since(l.since)
}

// wrote is what follows on why something ended that wrote to output, "" if it wrote nothing.
func wrote(output *process.Output) string {
	said := output.LastWords(lastWords)
	if len(said) == 0 {
		return ""
	}
	for i := range said {
		said[i] = text.Line(said[i], mostSaid)
	}
	return "; it last wrote: " + strings.Join(said, " | ")
}

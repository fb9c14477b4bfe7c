package plugins

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/host"
)

// mostMessage bounds a message of a condition or an event, in bytes.
const mostMessage = 1000

// shown is what a Plugin shows.
type shown struct {
	// status goes without conditions.
	status     v1alpha1.PluginStatus
	conditions []metav1.Condition
	// without are types of conditions that it does not have.
	without []string
}

// condition adds a condition.
func (s *shown) condition(kind string, holds bool, reason, message string) {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	s.conditions = append(s.conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: text.Line(message, mostMessage)})
}

// disabled is what a Plugin shows where no plugins are run. What it has offered, nobody offers.
func disabled(plugin *v1alpha1.Plugin) shown {
	was := &plugin.Status
	return shown{
		status: v1alpha1.PluginStatus{
			ObservedGeneration: plugin.Generation, Incarnation: was.Incarnation, Restarts: was.Restarts,
			LastError: was.LastError, LastErrorTime: was.LastErrorTime, RestartedFor: was.RestartedFor, RefetchedFor: was.RefetchedFor,
			RestartAsked: was.RestartAsked, RefetchAsked: was.RefetchAsked,
		},
		conditions: []metav1.Condition{{
			Type: v1alpha1.PluginReady, Status: metav1.ConditionFalse, Reason: v1alpha1.PluginReasonHostDisabled,
			Message: "this server runs no plugins, which are programs on its own host: start it with --plugins-dir DIR to let it",
		}},
		without: []string{v1alpha1.PluginStagesDistinct, v1alpha1.PluginIsolated, v1alpha1.PluginTargetsReady},
	}
}

// statusOf is what a Plugin shows of how it is.
func statusOf(plugin *v1alpha1.Plugin, of host.Status) shown {
	was := &plugin.Status
	out := shown{status: v1alpha1.PluginStatus{
		ObservedGeneration: of.Generation, Stages: of.Stages, Services: of.Services, Targets: of.Targets, Sha256: of.Sha256, StartTime: at(of.Started),
		Incarnation: of.Incarnation, Restarts: of.Restarts, LastError: of.LastError, LastErrorTime: at(of.LastErrorAt),
		RestartedFor: of.RestartedFor, RefetchedFor: of.RefetchedFor, RestartAsked: was.RestartAsked, RefetchAsked: was.RefetchAsked,
	}}
	if of.LastError == "" { // since this server was started
		out.status.LastError, out.status.LastErrorTime = was.LastError, was.LastErrorTime
	}
	if of.Started.IsZero() {
		out.status.RestartedFor = was.RestartedFor
	}
	out.condition(v1alpha1.PluginReady, of.Ready, of.Reason, of.Message)
	if of.Started.IsZero() {
		out.without = append(out.without, v1alpha1.PluginIsolated)
	} else if of.User != 0 {
		out.condition(v1alpha1.PluginIsolated, true, v1alpha1.PluginReasonOwnUser, fmt.Sprintf("it runs as user %d, which is its own", of.User))
	} else {
		out.condition(v1alpha1.PluginIsolated, false, v1alpha1.PluginReasonServersUser,
			"it runs as the user of the server, and can read what that can: start the server as root to have plugins run as users of their own")
	}
	if len(of.Stages) == 0 {
		out.without = append(out.without, v1alpha1.PluginStagesDistinct)
	} else {
		distinct, reason, message := stages(of)
		out.condition(v1alpha1.PluginStagesDistinct, distinct, reason, message)
	}
	return out
}

// stages reports whether the names of a plugin's stages are its own.
func stages(of host.Status) (distinct bool, reason, message string) {
	if len(of.Shared) > 0 {
		var said []string
		for _, shared := range of.Shared {
			said = append(said, fmt.Sprintf("%s is also offered by %s", shared.Stage, strings.Join(shared.Plugins, ", ")))
		}
		return false, v1alpha1.PluginReasonOfferedTwice, strings.Join(said, "; ") + ": pipelines with such a stage do not begin unless they say which plugin is meant"
	}
	var builtIn []string
	for _, stage := range of.Stages {
		if slices.Contains(v1alpha1.StageNames(), stage) {
			builtIn = append(builtIn, stage)
		}
	}
	if len(builtIn) > 0 {
		return true, v1alpha1.PluginReasonAlsoBuiltIn, strings.Join(builtIn, ", ") + ": there are built-in stages of these names, too, which applications without plugins have"
	}
	return true, v1alpha1.PluginReasonDistinct, "no other plugin offers stages of these names"
}

func at(when time.Time) *metav1.Time {
	if when.IsZero() {
		return nil
	}
	out := metav1.NewTime(when).Rfc3339Copy()
	return &out
}

// event is what is told of a Plugin.
type event struct {
	bad             bool
	reason, message string
}

// Reasons of events beside those of the condition Ready.
const (
	reasonRestarted = "Restarted"
	// reasonAsked is that somebody has asked for a restart, or for the program to be fetched again, and it was done.
	reasonAsked = "Asked"
)

// eventsOf is what has happened to a Plugin between two statuses.
func eventsOf(before, after *v1alpha1.PluginStatus) (out []event) {
	for _, of := range []struct {
		before, after string
		asked         *v1alpha1.PluginAsked
		what          string
	}{{before.RestartedFor, after.RestartedFor, after.RestartAsked, "it is restarted"}, {before.RefetchedFor, after.RefetchedFor, after.RefetchAsked, "its program was fetched again"}} {
		if of.asked != nil && of.after != of.before && of.after == of.asked.For {
			out = append(out, event{false, reasonAsked, text.Line(fmt.Sprintf("%s, for which user %q has asked", of.what, of.asked.By), mostMessage)})
		}
	}
	if after.Restarts > before.Restarts {
		out = append(out, event{true, reasonRestarted, text.Line(fmt.Sprintf("start %d failed or ended: %s", after.Incarnation, after.LastError), mostMessage)})
	}
	if is := meta.FindStatusCondition(after.Conditions, v1alpha1.PluginTargetsReady); is != nil && is.Status == metav1.ConditionFalse {
		if was := meta.FindStatusCondition(before.Conditions, v1alpha1.PluginTargetsReady); was == nil || was.Reason != is.Reason {
			out = append(out, event{true, is.Reason, is.Message})
		}
	}
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.PluginReady), meta.FindStatusCondition(after.Conditions, v1alpha1.PluginReady)
	if is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status {
		return out
	}
	switch is.Reason {
	case v1alpha1.PluginReasonAnswering:
		offers := "no stages"
		if len(after.Stages) > 0 {
			offers = strings.Join(after.Stages, ", ")
		}
		out = append(out, event{false, is.Reason, text.Line(fmt.Sprintf("start %d answers, and offers %s", after.Incarnation, offers), mostMessage)})
	case v1alpha1.PluginReasonFetchFailed, v1alpha1.PluginReasonChecksumDiffers, v1alpha1.PluginReasonRefused, v1alpha1.PluginReasonNotAnswering:
		out = append(out, event{true, is.Reason, is.Message})
	}
	return out
}

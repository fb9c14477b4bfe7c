package logs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

// mostLine bounds a line, in bytes.
const mostLine = 512

// fact is something that a status tells, and the line that tells it. A fact of a key that says something else than before is news.
type fact struct {
	key, value string
	line       v1alpha1.ReleaseLogLine
}

// facts are what the status of a release tells, from the oldest to the newest, with what scripts and Jobs have written, by the names of their runs.
func facts(last *v1alpha1.ReleaseLogPart, release *v1alpha1.Release, written map[string][]string, now time.Time) []fact {
	t := &teller{last: last, written: written, now: metav1.Time{Time: now.Truncate(time.Second)}}
	t.release(release)
	slices.SortStableFunc(t.out, func(a, b fact) int { return a.line.Time.Compare(b.line.Time.Time) })
	return t.out
}

// teller gathers facts.
type teller struct {
	last    *v1alpha1.ReleaseLogPart
	written map[string][]string
	now     metav1.Time
	out     []fact
}

// tell adds a fact. Without a time it is one of now.
func (t *teller) tell(at *metav1.Time, about v1alpha1.ReleaseLogLine, key, value, message string) {
	about.Time, about.Message = t.now, text.Line(message, mostLine)
	if at != nil {
		about.Time = metav1.Time{Time: at.Truncate(time.Second)}
	}
	t.out = append(t.out, fact{key: digest(key, keyBytes), value: digest(value, valueBytes), line: about})
}

// keyBytes and valueBytes are how much of a digest tells a fact, or what it says, from others.
const keyBytes, valueBytes = 6, 4

// digest stands for a text in a part, of which there may be thousands.
func digest(of string, bytes int) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:bytes])
}

func (t *teller) release(release *v1alpha1.Release) {
	status := &release.Status
	for i := range status.Requests {
		t.request(i, &status.Requests[i])
	}
	if status.StartTime != nil {
		how := ""
		if status.Plan != nil {
			how = fmt.Sprintf(" by %s: %s", status.Plan.Strategy, status.Plan.Reason)
		}
		t.tell(status.StartTime, v1alpha1.ReleaseLogLine{}, "begin", status.StartTime.String(), fmt.Sprintf("release of %s begins%s", release.Spec.Revision, strings.TrimSuffix(how, ": ")))
	}
	for i := range status.Stages {
		t.stage(&status.Stages[i])
	}
	if status.Phase == "" || status.Phase == v1alpha1.ReleaseRunning && status.Message == "" {
		return
	}
	at := status.EndTime
	if !status.Phase.Ended() {
		at = nil
	}
	t.tell(at, v1alpha1.ReleaseLogLine{}, "phase", ended(at, string(status.Phase), status.Message), said("release", string(status.Phase), status.Message))
}

func (t *teller) request(i int, request *v1alpha1.ReleaseRequest) {
	what := []string{request.User, "asks:", string(request.Type)}
	if request.Rollback {
		what = append(what, "and Rollback")
	}
	if len(request.Targets) > 0 {
		what = append(what, "in "+strings.Join(request.Targets, ", "))
	}
	if request.Comment != "" {
		what = append(what, fmt.Sprintf("%q", request.Comment))
	}
	t.tell(&request.Time, v1alpha1.ReleaseLogLine{Stage: request.Stage}, "request/"+strconv.Itoa(i), request.Time.String()+request.User, strings.Join(what, " "))
}

func (t *teller) stage(stage *v1alpha1.StageStatus) {
	about, key := v1alpha1.ReleaseLogLine{Stage: stage.ID}, "stage/"+stage.ID
	if stage.StartTime != nil {
		attempt := ""
		if stage.Attempt > 1 {
			attempt = fmt.Sprintf(", attempt %d", stage.Attempt)
		}
		t.tell(stage.StartTime, about, key+"/begin", strconv.Itoa(int(stage.Attempt)), fmt.Sprintf("%s begins%s", stage.Name, attempt))
	}
	for _, approver := range stage.Approvers {
		t.tell(nil, about, key+"/approver/"+approver, strconv.Itoa(int(stage.Attempt)), "approved by "+approver)
	}
	for i := range stage.Metrics {
		t.metric(about, key, &stage.Metrics[i])
	}
	for i := range stage.Targets {
		t.target(stage, &stage.Targets[i])
	}
	t.output(stage, about)
	if stage.Phase == "" || stage.Phase == v1alpha1.StageNotStarted || stage.Phase == v1alpha1.StageRunning && stage.Message == "" {
		return
	}
	at := stage.EndTime
	if !stage.Phase.Ended() {
		at = nil
	}
	t.tell(at, about, key, ended(at, string(stage.Phase), stage.Message), said(stage.Name, string(stage.Phase), stage.Message))
}

func (t *teller) metric(about v1alpha1.ReleaseLogLine, stage string, metric *v1alpha1.MetricStatus) {
	if metric.LastTime == nil {
		return
	}
	message := fmt.Sprintf("%s: %d measurements, %d of them bad", metric.Name, metric.Checks, metric.Failures)
	if metric.Failures > 0 && metric.Message != "" {
		message += ", at last: " + metric.Message
	}
	t.tell(metric.LastTime, about, stage+"/metric/"+metric.Name, metric.LastTime.String()+message, message)
}

func (t *teller) target(stage *v1alpha1.StageStatus, target *v1alpha1.StageTargetStatus) {
	about := v1alpha1.ReleaseLogLine{Stage: stage.ID, Target: target.Name, Cluster: target.Cluster}
	key := strings.Join([]string{"target", stage.ID, target.Name, target.Cluster}, "/")
	if target.StartTime != nil {
		t.tell(target.StartTime, about, key+"/begin", strconv.Itoa(int(stage.Attempt)), strings.TrimSpace("begins "+target.Revision))
	}
	quiet := target.Phase == v1alpha1.TargetPending || target.Phase == v1alpha1.TargetRunning
	if target.Phase == "" || quiet && target.Message == "" {
		return
	}
	at := target.EndTime
	if !target.Phase.Ended() {
		at = nil
	}
	t.tell(at, about, key, ended(at, string(target.Phase), target.Message), said("", string(target.Phase), target.Message))
}

// ended is the value of a fact that may come once more, at another time, in the same words.
func ended(at *metav1.Time, words ...string) string {
	if at != nil {
		words = append(words, at.UTC().Format(time.RFC3339))
	}
	return strings.Join(words, "\x00")
}

func said(what, phase, message string) string {
	out := strings.TrimSpace(what + " " + phase)
	return cmp.Or(strings.TrimSuffix(out+": "+message, ": "), out)
}

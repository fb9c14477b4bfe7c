package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// ReasonReportDoubted is the reason of the event that a cluster reports of an object what cannot be.
const ReasonReportDoubted = "ReportDoubted"

// tellDoubts writes an event about each cluster that begins to report what cannot be. The breakdown tells of it as long as it does.
func (c *Controller) tellDoubts(in summary.Object, reports map[string]summary.Report) {
	if c.Recorder == nil {
		return
	}
	var last summary.Breakdown
	for _, cluster := range slices.Sorted(maps.Keys(reports)) {
		doubts := reports[cluster].Doubts
		if len(doubts) == 0 {
			continue
		}
		if last == nil { // the annotation is ours; if it is damaged, the event comes once more
			last, _ = summary.ParseBreakdown(in.GetAnnotations()[v1alpha1.AnnotationStatus])
		}
		if last[cluster].Doubt == "" {
			c.Recorder.Event(in, corev1.EventTypeWarning, ReasonReportDoubted,
				fmt.Sprintf("cluster %q reports values that cannot be right, which are ignored: %s", cluster, strings.Join(doubts, "; ")))
		}
	}
}

// tellOtherDoubts is tellDoubts for an object without a breakdown, of which it is remembered what was told.
func (c *Controller) tellOtherDoubts(key identity.Key, in summary.Object, reports map[string]summary.Report) {
	var said []string
	for _, cluster := range slices.Sorted(maps.Keys(reports)) {
		if doubts := reports[cluster].Doubts; len(doubts) > 0 {
			said = append(said, fmt.Sprintf("cluster %q reports values that cannot be right, which are ignored: %s", cluster, strings.Join(doubts, "; ")))
		}
	}
	text := strings.Join(said, "; ")
	if c.doubted.News(key, text) && c.Recorder != nil {
		c.Recorder.Event(in, corev1.EventTypeWarning, ReasonReportDoubted, text)
	}
}

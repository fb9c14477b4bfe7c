package planning

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/placement"
)

func TestStuck(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	since := func(age time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-age)) }
	}
	pod := func(name string, ready corev1.ConditionStatus, edits ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
		}}
		since(becomesReady)(p)
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	ready := func(name string) *corev1.Pod { return pod(name, corev1.ConditionTrue) }
	unready := func(name string) *corev1.Pod { return pod(name, corev1.ConditionFalse) }
	ending := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	for name, test := range map[string]struct {
		pods  []*corev1.Pod
		asked placement.Range
		want  []string
	}{
		"all are ready":                             {pods: []*corev1.Pod{ready("db-0"), ready("db-1"), ready("db-2")}},
		"the last is not ready, and goes":           {pods: []*corev1.Pod{ready("db-0"), ready("db-1"), unready("db-2")}},
		"the first is not ready, and the last goes": {pods: []*corev1.Pod{unready("db-0"), ready("db-1"), ready("db-2")}},
		"two are not ready, and the last goes":      {pods: []*corev1.Pod{unready("db-0"), unready("db-1"), ready("db-2")}},
		"the last waits for the first":              {pods: []*corev1.Pod{unready("db-0"), ready("db-1"), unready("db-2")}, want: []string{"db-2", "db-0"}},
		"the last waits for one that stays": {
			pods: []*corev1.Pod{ready("db-0"), unready("db-1"), unready("db-2")}, asked: placement.Range{End: 2}, want: []string{"db-2"},
		},
		"one that is ready waits for one that stays": {
			pods: []*corev1.Pod{unready("db-0"), ready("db-1"), ready("db-2")}, asked: placement.Range{End: 1}, want: []string{"db-2", "db-1"},
		},
		"those that stay end not": {pods: []*corev1.Pod{unready("db-0"), unready("db-1")}, asked: placement.Range{End: 2}},
		"what the user asks for no more waits": {
			pods: []*corev1.Pod{ready("db-0"), unready("db-3"), unready("db-4")}, asked: placement.Range{End: 1},
		},
		"those before it do not": {
			pods: []*corev1.Pod{ready("db-0"), unready("db-2"), unready("db-4")}, asked: placement.Range{End: 1}, want: []string{"db-2"},
		},
		"one is ending": {pods: []*corev1.Pod{unready("db-0"), unready("db-1"), pod("db-2", corev1.ConditionFalse, ending)}},
		"one says that it is ready and has failed": {
			pods: []*corev1.Pod{unready("db-0"), pod("db-1", corev1.ConditionTrue, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
			want: []string{"db-1", "db-0"},
		},
		"one may be ready soon": {pods: []*corev1.Pod{unready("db-0"), pod("db-1", corev1.ConditionFalse, since(becomesReady-time.Second))}},
		"one is new and may be ready soon": {pods: []*corev1.Pod{unready("db-0"), pod("db-1", "", func(p *corev1.Pod) {
			p.CreationTimestamp, p.Status.Conditions = metav1.NewTime(now), nil
		})}},
		"one has never said that it is ready":       {pods: []*corev1.Pod{unready("db-0"), pod("db-1", "", func(p *corev1.Pod) { p.Status.Conditions = nil })}, want: []string{"db-1", "db-0"}},
		"one is ready since a moment ago, and goes": {pods: []*corev1.Pod{unready("db-0"), unready("db-1"), pod("db-2", corev1.ConditionTrue, since(0))}},
		"one has no number":                         {pods: []*corev1.Pod{unready("db"), unready("db-1")}},
		"there are none":                            {},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, pod := range stuck(test.pods, test.asked, placement.Range{End: 3}, now) {
				got = append(got, pod.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("ends %v, want %v", got, test.want)
			}
		})
	}
}

package validation

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func recordOf(change func(*v1alpha1.PluginRecordSpec)) *v1alpha1.PluginRecord {
	out := &v1alpha1.PluginRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"},
		Spec:       v1alpha1.PluginRecordSpec{Plugin: "toy", Application: "web", Release: "web-1", Metadata: map[string]string{"a": "b"}, Stages: []v1alpha1.StageRecord{{ID: "copy", Attempt: 1, Metadata: map[string]string{"c": "d"}}}},
	}
	if change != nil {
		change(&out.Spec)
	}
	return out
}

func TestWhatPluginsKeepIsBounded(t *testing.T) {
	many := func(n, bytes int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprint(i)] = strings.Repeat("x", bytes)
		}
		return out
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.PluginRecordSpec)
		want   string // "" if it is valid
	}{
		"of a release": {},
		"of an application": {change: func(s *v1alpha1.PluginRecordSpec) {
			*s = v1alpha1.PluginRecordSpec{Plugin: "toy", Application: "web", Objects: map[string][]byte{"a": {1}}}
		}},
		"of nobody":               {change: func(s *v1alpha1.PluginRecordSpec) { s.Plugin = "" }, want: "spec.plugin"},
		"objects of a release":    {change: func(s *v1alpha1.PluginRecordSpec) { s.Objects = map[string][]byte{"a": {1}} }, want: "spec.objects"},
		"metadata of no release":  {change: func(s *v1alpha1.PluginRecordSpec) { s.Release = "" }, want: "spec.release"},
		"an empty key":            {change: func(s *v1alpha1.PluginRecordSpec) { s.Metadata[""] = "x" }, want: "spec.metadata"},
		"a long key":              {change: func(s *v1alpha1.PluginRecordSpec) { s.Stages[0].Metadata[strings.Repeat("k", 257)] = "x" }, want: "spec.stages[0].metadata"},
		"as many keys as may be":  {change: func(s *v1alpha1.PluginRecordSpec) { s.Metadata = many(256, 1) }},
		"more":                    {change: func(s *v1alpha1.PluginRecordSpec) { s.Metadata = many(257, 1) }, want: "spec.metadata"},
		"as many bytes as may be": {change: func(s *v1alpha1.PluginRecordSpec) { s.Metadata, s.Stages = many(1, 512<<10-1), nil }},
		"more of all together":    {change: func(s *v1alpha1.PluginRecordSpec) { s.Metadata = many(1, 512<<10-2) }, want: "at most 524288 bytes"},
		"more stages than a plan": {change: func(s *v1alpha1.PluginRecordSpec) { s.Stages = make([]v1alpha1.StageRecord, 257) }, want: "spec.stages"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidatePluginRecord(recordOf(test.change))
			if got := errs.ToAggregate(); (got == nil) != (test.want == "") || got != nil && !strings.Contains(got.Error(), test.want) {
				t.Errorf("%v, want %q", got, test.want)
			}
		})
	}
}

func TestARecordStaysThatOfWhatItIsOf(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.PluginRecordSpec){
		"spec.plugin":      func(s *v1alpha1.PluginRecordSpec) { s.Plugin = "other" },
		"spec.application": func(s *v1alpha1.PluginRecordSpec) { s.Application = "other" },
		"spec.release":     func(s *v1alpha1.PluginRecordSpec) { s.Release = "other" },
	} {
		now, old := recordOf(change), recordOf(nil)
		now.ResourceVersion, old.ResourceVersion = "1", "1"
		if err := ValidatePluginRecordUpdate(now, old).ToAggregate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	now, old := recordOf(func(s *v1alpha1.PluginRecordSpec) { s.Metadata["a"] = "z" }), recordOf(nil)
	now.ResourceVersion, old.ResourceVersion = "1", "1"
	if err := ValidatePluginRecordUpdate(now, old).ToAggregate(); err != nil {
		t.Error(err)
	}
}

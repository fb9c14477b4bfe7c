package physical

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

// keeping is a cluster that keeps pods to a level, "" for none, without what is lost of that. What is applied there and deleted is noted.
func keeping(t *testing.T, level, lost string) (c *Cluster, done *[]string) {
	t.Helper()
	var objects []runtime.Object
	if level != "" {
		all, err := grants.ForPodSecurity(testLogical, level)
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range all {
			var typed runtime.Object = &admissionregistrationv1.ValidatingAdmissionPolicy{}
			if piece.Object.GetKind() != "ValidatingAdmissionPolicy" {
				typed = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(piece.Object.Object, typed); err != nil {
				t.Fatal(err)
			}
			if piece.Object.GetKind() != lost {
				objects = append(objects, typed)
			}
		}
	}
	done = new([]string)
	client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...)
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch, object := a.(clienttesting.PatchAction), &unstructured.Unstructured{}
		if err := json.Unmarshal(patch.GetPatch(), &object.Object); err != nil {
			return true, object, nil // what was changed is brought back first
		}
		if strings.HasSuffix(patch.GetName(), "-pod-security") {
			*done = append(*done, grants.PodSecurityIn(object.GetLabels(), object.GetAnnotations()))
		}
		return true, object, nil
	})
	return &Cluster{client: fake.NewClientset(objects...), dynamic: client}, done
}

func TestALevelOfPodSecurityStaysUntilAnotherIsGiven(t *testing.T) {
	for name, test := range map[string]struct {
		before, lost, wanted, want string
	}{
		"none":                          {},
		"one that is given":             {wanted: grants.Baseline, want: grants.Baseline},
		"one of before":                 {before: grants.Restricted, want: grants.Restricted},
		"one whose policy has gone":     {before: grants.Restricted, lost: "ValidatingAdmissionPolicy", want: grants.Restricted},
		"one whose binding has gone":    {before: grants.Restricted, lost: "ValidatingAdmissionPolicyBinding", want: grants.Restricted},
		"another one":                   {before: grants.Restricted, wanted: grants.Baseline, want: grants.Baseline},
		"one that is to be lifted goes": {before: grants.Baseline, wanted: grants.Privileged},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, applied := keeping(t, test.before, test.lost)
			var undo Undo
			if _, err := cluster.Grant(t.Context(), testLogical, grants.Allowances{PodSecurity: test.wanted}, &undo); err != nil {
				t.Fatal(err)
			}
			var want []string // the policy and its binding
			if test.want != "" {
				want = []string{test.want, test.want}
			}
			if !slices.Equal(*applied, want) {
				t.Errorf("applied for levels %q, want %q", *applied, want)
			}
		})
	}
}

func TestALevelOfPodSecurityIsLifted(t *testing.T) {
	for _, level := range []string{"", grants.Baseline, grants.Restricted} {
		cluster, _ := keeping(t, level, "")
		taken, err := cluster.LiftPodSecurity(t.Context(), testLogical)
		if err != nil || taken != (level != "") {
			t.Errorf("level %q: taken: %t, %v", level, taken, err)
		}
		all, err := grants.ForPodSecurity(testLogical, grants.Baseline)
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range all {
			if found, err := cluster.look(t.Context(), piece); err != nil || !slices.Equal(found.Differs, []string{"missing"}) {
				t.Errorf("level %q: %s is still there: %v, %v", level, piece, found, err)
			}
		}
	}
}

func TestAChangedLevelOfPodSecurityIsFound(t *testing.T) {
	cluster, _ := keeping(t, grants.Baseline, "ValidatingAdmissionPolicyBinding")
	level, err := cluster.PodSecurity(t.Context(), testLogical)
	if err != nil {
		t.Fatal(err)
	}
	all, err := grants.All(testLogical, grants.Allowances{PodSecurity: level})
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, piece := range all {
		if !strings.HasSuffix(piece.Object.GetName(), "-pod-security") {
			continue
		}
		found, err := cluster.look(t.Context(), piece)
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Differs) > 0 {
			missing = append(missing, found.What)
		}
	}
	if want := []string{"ValidatingAdmissionPolicyBinding " + grants.PodSecurityName(testLogical)}; !slices.Equal(missing, want) {
		t.Errorf("%q differ, want %q", missing, want)
	}
}

func TestALevelOfPodSecurityIsMissedWhateverIsLeftOfIt(t *testing.T) {
	const policy, binding = "ValidatingAdmissionPolicy ", "ValidatingAdmissionPolicyBinding "
	for name, test := range map[string]struct {
		there, lost, said string
		want              []string
	}{
		"what is as it was":                         {there: grants.Baseline, said: grants.Baseline},
		"one part has gone":                         {there: grants.Baseline, lost: "ValidatingAdmissionPolicy", said: grants.Baseline, want: []string{policy + "missing"}},
		"both parts have gone":                      {said: grants.Restricted, want: []string{policy + "missing", binding + "missing"}},
		"another level":                             {there: grants.Baseline, said: grants.Restricted, want: []string{policy + "differs"}},
		"one that an earlier version did not write": {there: grants.Baseline, lost: "ValidatingAdmissionPolicy", want: []string{policy + "missing"}},
		"none": {},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := keeping(t, test.there, test.lost)
			findings, err := cluster.Compare(t.Context(), testLogical, v1alpha1.ClusterAllows{PodSecurity: test.said}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range findings {
				if kind, of := strings.CutSuffix(f.What, grants.PodSecurityName(testLogical)); of && len(f.Differs) > 0 {
					first, _, _ := strings.Cut(f.Differs[0], ":")
					got = append(got, kind+first)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

package weave

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// targeting is a pipeline of the app web with these targets, each as NAMESPACE or CLUSTER/NAMESPACE, that carries a note.
func targeting(note string, targets ...Target) *Pipeline {
	p := &Pipeline{Spec: Spec{AppRef: &AppReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, Environments: []Environment{{Name: "dev", Targets: targets}}}}
	p.APIVersion = Group + "/" + Version
	if note != "" {
		p.Annotations = map[string]string{v1alpha1.AnnotationAuthors: note}
	}
	return p
}

func TestItIsNotedWhoHasNamedATarget(t *testing.T) {
	shop, farm := Target{Namespace: "shop"}, Target{Namespace: "farm"}
	east := Target{Namespace: "shop", ClusterRef: &ClusterReference{Kind: KindCluster, Name: "east"}}
	const (
		ann   = `{"user":"ann","groups":["ops"],"targets":["shop"]}`
		joe   = `{"user":"joe","targets":["farm"]}`
		eve   = `{"user":"eve","targets":["shop"]}`
		byAnn = `[` + ann + `]`
	)
	otherApp := targeting("", shop)
	otherApp.Spec.AppRef = &AppReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "api"}
	for name, test := range map[string]struct {
		before, after *Pipeline
		by            Author
		// may are those who may list what is anywhere.
		may  []string
		want string
	}{
		"who makes the pipeline":                        {after: targeting("", shop), by: Author{User: "ann", Groups: []string{"ops"}}, want: byAnn},
		"whatever the object says":                      {after: targeting(`[{"user":"boss","targets":["shop"]}]`, shop), by: Author{User: "ann", Groups: []string{"ops"}}, want: byAnn},
		"of several targets":                            {after: targeting("", shop, east, shop), by: Author{User: "ann"}, want: `[{"user":"ann","targets":["shop","east/shop"]}]`},
		"who adds one, beside who was there":            {before: targeting(byAnn, shop), after: targeting(byAnn, shop, farm), by: Author{User: "joe"}, may: []string{"ann", "joe"}, want: `[` + ann + `,` + joe + `]`},
		"not who changes something else":                {before: targeting(byAnn, shop), after: targeting(byAnn, shop), by: Author{User: "eve"}, may: []string{"ann", "eve"}, want: byAnn},
		"though the note is left out":                   {before: targeting(byAnn, shop), after: targeting("", shop), by: Author{User: "eve"}, may: []string{"ann", "eve"}, want: byAnn},
		"who names another app":                         {before: targeting(byAnn, shop), after: otherApp, by: Author{User: "eve"}, may: []string{"ann", "eve"}, want: `[` + eve + `]`},
		"who may, once the author may not":              {before: targeting(byAnn, shop), after: targeting(byAnn, shop), by: Author{User: "eve"}, may: []string{"eve"}, want: `[` + eve + `]`},
		"not who may not either":                        {before: targeting(byAnn, shop), after: targeting(byAnn, shop), by: Author{User: "eve"}, want: byAnn},
		"nobody, of what was there before it was noted": {before: targeting("", shop), after: targeting("", shop, farm), by: Author{User: "joe"}, may: []string{"joe"}, want: `[` + joe + `]`},
		"and nothing at all of that alone":              {before: targeting("", shop), after: targeting("", shop), by: Author{User: "joe"}, may: []string{"joe"}},
		"a note that does not read is none":             {before: targeting("{", shop), after: targeting("{", shop), by: Author{User: "joe"}, may: []string{"joe"}},
		"a target that is gone is nobody's":             {before: targeting(byAnn, shop), after: targeting(byAnn)},
	} {
		t.Run(name, func(t *testing.T) {
			got := Note(test.before, test.after, test.by, func(a Author, r Right) bool { return r.Verb == "list" && slices.Contains(test.may, a.User) })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// using is a pipeline that promotes with the Secret forge, whose calls the Secret hook signs, and to prod as the ServiceAccount promoter.
func using(note string) *Pipeline {
	p := targeting(note, Target{Namespace: "shop"})
	p.Namespace = "ops"
	p.Spec.Environments = append(p.Spec.Environments, Environment{Name: "prod", Targets: []Target{{Namespace: "shop"}}, Promotion: &Promotion{
		Strategy: Strategy{Direct: &Direct{ServiceAccountName: "promoter"}},
	}})
	p.Spec.Promotion = &Promotion{Strategy: Strategy{PullRequest: &PullRequest{SecretRef: SecretReference{Name: "forge"}}, SecretRef: &SecretReference{Name: "hook"}}}
	return p
}

func TestItIsNotedWhoHasAPipelineUseSomething(t *testing.T) {
	const (
		ann   = `{"user":"ann","targets":["shop"],"uses":["secrets/forge","serviceaccounts/promoter","secrets/hook"]}`
		byAnn = `[` + ann + `]`
	)
	another := func(change func(*Spec)) *Pipeline {
		p := using("")
		change(&p.Spec)
		return p
	}
	everything := []string{"get secrets/forge", "get secrets/hook", "impersonate serviceaccounts/promoter"}
	for name, test := range map[string]struct {
		before, after *Pipeline
		by            string
		// may are the rights of each to what is used.
		may  map[string][]string
		want string
	}{
		"who makes the pipeline":         {after: using(""), by: "ann", want: byAnn},
		"not who changes something else": {before: using(byAnn), after: using(""), by: "eve", may: map[string][]string{"ann": everything, "eve": everything}, want: byAnn},
		"who changes what is done with it, but for the key": {
			before: using(byAnn), after: another(func(s *Spec) { s.Environments[0].Name = "test" }), by: "eve", may: map[string][]string{"ann": everything, "eve": everything},
			want: `[{"user":"ann","targets":["shop"],"uses":["secrets/hook"]},{"user":"eve","uses":["secrets/forge","serviceaccounts/promoter"]}]`,
		},
		"who names another key": {
			before: using(byAnn), after: another(func(s *Spec) { s.Promotion.Strategy.SecretRef.Name = "forge" }), by: "eve", may: map[string][]string{"ann": everything, "eve": everything},
			want: `[{"user":"ann","targets":["shop"]},{"user":"eve","uses":["secrets/forge","serviceaccounts/promoter"]}]`,
		},
		"who may, once the author may not": {
			before: using(byAnn), after: using(""), by: "eve", may: map[string][]string{"ann": {"get secrets/hook", "impersonate serviceaccounts/promoter"}, "eve": everything},
			want: `[{"user":"ann","targets":["shop"],"uses":["serviceaccounts/promoter","secrets/hook"]},{"user":"eve","uses":["secrets/forge"]}]`,
		},
		"not who may not either":                        {before: using(byAnn), after: using(""), by: "eve", want: byAnn},
		"nobody, of what was there before it was noted": {before: using(""), after: using(""), by: "eve", may: map[string][]string{"eve": everything}},
		"what is not used any more is nobody's":         {before: using(byAnn), after: another(func(s *Spec) { *s = targeting("", Target{Namespace: "shop"}).Spec }), by: "eve", want: `[{"user":"ann","targets":["shop"]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			test.after.Namespace = "ops"
			got := Note(test.before, test.after, Author{User: test.by}, func(a Author, r Right) bool {
				return r.Verb == "list" && a.User == "ann" || r.Namespace == "ops" && slices.Contains(test.may[a.User], r.Verb+" "+r.use())
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestARightThatIsLostToWhatAPipelineUsesIsNamed(t *testing.T) {
	p := using(`[{"user":"ann","uses":["secrets/forge","serviceaccounts/promoter"]},{"user":"joe","uses":["secrets/hook"]}]`)
	for name, test := range map[string]struct {
		lost string
		// want are those of both environments, and of the key.
		want [3]string
	}{
		"none":                  {},
		"to the credential":     {lost: `ann get secrets "forge" in namespace "ops"`, want: [3]string{`"ann", who has this pipeline use it, has lost the right to get secrets "forge" in namespace "ops"`}},
		"of somebody else":      {lost: `joe get secrets "forge" in namespace "ops"`},
		"to the ServiceAccount": {lost: `ann impersonate serviceaccounts "promoter" in namespace "ops"`, want: [3]string{1: `has lost the right to impersonate serviceaccounts "promoter" in namespace "ops"`}},
		"to the key":            {lost: `joe get secrets "hook" in namespace "ops"`, want: [3]string{2: `"joe", who has this pipeline use it, has lost the right to get secrets "hook"`}},
	} {
		may := func(a Author, r Right) bool { return a.User+" "+r.String() != test.lost }
		for i, got := range []*Lost{p.LostTo(0, Authors(p), may), p.LostTo(1, Authors(p), may), p.LostKey("hook", Authors(p), may)} {
			if (got != nil) != (test.want[i] != "") || got != nil && !strings.Contains(got.String(), test.want[i]) {
				t.Errorf("%s: %d is %v, want %q", name, i, got, test.want[i])
			}
		}
	}
	p.Annotations = nil
	if got := p.LostTo(0, Authors(p), func(Author, Right) bool { return false }); got != nil {
		t.Errorf("nobody is known to have lost anything, and it is %v", got)
	}
}

func TestTheAuthorOfATargetIsFoundByItsPlace(t *testing.T) {
	authors := Authors(targeting(`[{"user":"ann","targets":["shop"]},{"user":"joe","targets":["east/shop"]}]`))
	for name, test := range map[string]struct {
		target Target
		want   string
	}{
		"of the logical cluster":   {Target{Namespace: "shop"}, "ann"},
		"of a cluster":             {Target{Namespace: "shop", ClusterRef: &ClusterReference{Name: "east"}}, "joe"},
		"of another, it is nobody": {Target{Namespace: "shop", ClusterRef: &ClusterReference{Name: "west"}}, ""},
	} {
		if got, known := AuthorOf(authors, test.target); got.User != test.want || known != (test.want != "") {
			t.Errorf("%s: %q, %t, want %q", name, got.User, known, test.want)
		}
	}
}

// FuzzAuthors reads notes that somebody may have written before they were kept from that.
func FuzzAuthors(f *testing.F) {
	f.Add(`[{"user":"ann","targets":["shop"]}]`)
	f.Add(`[null]`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, note string) {
		p := targeting(note, Target{Namespace: "shop"})
		again := targeting(Note(p, p, Author{User: "joe"}, func(Author, Right) bool { return true }), Target{Namespace: "shop"})
		was, known := AuthorOf(Authors(p), p.Spec.Environments[0].Targets[0])
		if is, still := AuthorOf(Authors(again), p.Spec.Environments[0].Targets[0]); is.User != was.User || still != known {
			t.Errorf("%q was of %q, and is of %q", note, was.User, is.User)
		}
	})
}

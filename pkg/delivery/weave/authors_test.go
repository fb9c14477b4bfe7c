package weave

import (
	"slices"
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

package v1alpha1

import "testing"

func TestRevisionNumber(t *testing.T) {
	for name, test := range map[string]struct {
		application, revision string
		want                  int64
	}{
		"a revision of the application":        {"web", "web-v7", 7},
		"one of many":                          {"web", RevisionName("web", 1<<40), 1 << 40},
		"an application whose name looks like": {"web-v1", "web-v1-v2", 2},
		"a revision of another one":            {"web", "shop-v7", 0},
		"a chunk":                              {"web", ChunkName("web-v7", 1), 0},
		"a number that is written otherwise":   {"web", "web-v07", 0},
		"a sign":                               {"web", "web-v+7", 0},
		"no number":                            {"web", "web-v", 0},
		"a number that is none":                {"web", "web-v0", 0},
		"a number that is too large":           {"web", "web-v99999999999999999999", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RevisionNumber(test.application, test.revision); got != test.want {
				t.Errorf("RevisionNumber(%q, %q) = %d, want %d", test.application, test.revision, got, test.want)
			}
		})
	}
}

func TestParseRevisionName(t *testing.T) {
	for name, test := range map[string]struct {
		revision, want string
		number         int64
	}{
		"a revision": {"web-v7", "web", 7},
		"of an application whose name looks like": {"web-v1-v2", "web-v1", 2},
		"a chunk":          {ChunkName("web-v7", 1), "", 0},
		"no application":   {"-v7", "", 0},
		"no number":        {"web-v", "", 0},
		"another ending":   {"web-v7a", "", 0},
		"no name at all":   {"", "", 0},
		"a leading nought": {"web-v07", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			application, number, ok := ParseRevisionName(test.revision)
			if ok != (test.number > 0) || ok && (application != test.want || number != test.number) {
				t.Errorf("ParseRevisionName(%q) = %q, %d, %t; want %q, %d", test.revision, application, number, ok, test.want, test.number)
			}
		})
	}
}

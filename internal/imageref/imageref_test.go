package imageref

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for image, want := range map[string]Reference{
		"":                                {},
		"web":                             {Name: "web"},
		"web:1.0":                         {Name: "web", Tag: "1.0"},
		"web:":                            {Name: "web"},
		"registry.example:5000/web":       {Name: "registry.example:5000/web"},
		"registry.example:5000/web:1.0":   {Name: "registry.example:5000/web", Tag: "1.0"},
		"shop/web@sha256:12":              {Name: "shop/web", Digest: "sha256:12"},
		"shop/web:1.0@sha256:12":          {Name: "shop/web", Tag: "1.0", Digest: "sha256:12"},
		"registry.example:5000/web@sha:1": {Name: "registry.example:5000/web", Digest: "sha:1"},
	} {
		if got := Parse(image); got != want || !strings.HasPrefix(image, got.Name) {
			t.Errorf("%q is %+v, want %+v", image, got, want)
		}
	}
}

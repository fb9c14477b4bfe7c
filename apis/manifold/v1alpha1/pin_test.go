package v1alpha1

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestParsePin(t *testing.T) {
	longest := strings.Repeat("a", 63)
	for name, test := range map[string]struct {
		value string
		want  Pin
	}{
		"one name pins to one cluster":            {value: "east", want: Pin{Names: []string{"east"}}},
		"names are sorted":                        {value: "west,east", want: Pin{Names: []string{"east", "west"}}},
		"a name that is repeated counts once":     {value: "east,west,east", want: Pin{Names: []string{"east", "west"}}},
		"spaces around names are ignored":         {value: " east , west\t", want: Pin{Names: []string{"east", "west"}}},
		"a star means all clusters":               {value: "*", want: Pin{All: true}},
		"a star with spaces means all clusters":   {value: " * ", want: Pin{All: true}},
		"a star that is repeated means the same":  {value: "*,*", want: Pin{All: true}},
		"digits and dashes are fine inside names": {value: "1-east-2", want: Pin{Names: []string{"1-east-2"}}},
		"a name may have 63 characters":           {value: longest, want: Pin{Names: []string{longest}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePin(test.value)
			if err != nil {
				t.Fatalf("ParsePin(%q): %v", test.value, err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("ParsePin(%q) = %+v, want %+v", test.value, got, test.want)
			}
		})
	}
}

func TestParsePinRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		want  string
	}{
		"nothing":                          {value: "", want: "names no cluster"},
		"spaces alone":                     {value: " \t", want: "names no cluster"},
		"a comma alone":                    {value: ",", want: "entry 1: is blank"},
		"a trailing comma":                 {value: "east,", want: "entry 2: is blank"},
		"a leading comma":                  {value: ",east", want: "entry 1: is blank"},
		"a blank entry":                    {value: "east, ,west", want: "entry 2: is blank"},
		"a star among names":               {value: "east,*", want: `"*" stands for all clusters`},
		"a star before names":              {value: "*,east", want: `"*" stands for all clusters`},
		"a pattern":                        {value: "ea*", want: `entry 1: "ea*" is not a cluster name`},
		"capital letters":                  {value: "East", want: `entry 1: "East" is not a cluster name`},
		"a dot":                            {value: "east.example", want: `"east.example" is not a cluster name`},
		"names that spaces separate":       {value: "east west", want: `"east west" is not a cluster name`},
		"names that semicolons separate":   {value: "east;west", want: `"east;west" is not a cluster name`},
		"a name that starts with a dash":   {value: "-east", want: `"-east" is not a cluster name`},
		"a name that is too long":          {value: strings.Repeat("a", 64), want: "must be no more than 63"},
		"JSON instead of a list":           {value: `["east"]`, want: "is not a cluster name"},
		"a letter that is not ASCII":       {value: "öst", want: "is not a cluster name"},
		"bytes that are not UTF-8 at all":  {value: "\xff", want: "is not a cluster name"},
		"the second of two names is wrong": {value: "east,West", want: `entry 2: "West"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePin(test.value)
			if err == nil {
				t.Fatalf("ParsePin(%q) = %+v, want an error with %q", test.value, got, test.want)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("ParsePin(%q): %v, want an error with %q", test.value, err, test.want)
			}
		})
	}
}

func TestValidatePinNamesThePathAndTheValue(t *testing.T) {
	path := field.NewPath("metadata", "annotations").Key(AnnotationClusters)
	if errs := ValidatePin("east,west", path); len(errs) != 0 {
		t.Errorf("a good pin was refused: %v", errs)
	}
	errs := ValidatePin("east,", path)
	if len(errs) != 1 {
		t.Fatalf("got %d errors, want 1: %v", len(errs), errs)
	}
	want := `metadata.annotations[manifold.dev/clusters]: Invalid value: "east,": entry 2: is blank`
	if got := errs[0].Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPinSelects(t *testing.T) {
	for name, test := range map[string]struct {
		pin  Pin
		want bool
	}{
		"a star selects any cluster":              {pin: Pin{All: true}, want: true},
		"names select the clusters they name":     {pin: Pin{Names: []string{"east", "west"}}, want: true},
		"names leave out the clusters they don't": {pin: Pin{Names: []string{"west"}}, want: false},
		"an empty pin selects nothing":            {pin: Pin{}, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.pin.Selects("east"); got != test.want {
				t.Errorf("%+v.Selects(east) = %t, want %t", test.pin, got, test.want)
			}
		})
	}
}

func FuzzParsePin(f *testing.F) {
	for _, seed := range []string{"", "east", "west,east,west", "*", "*,*", "east,*", " a , b ", ",", "East", "a\x00b", "ä"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		pin, err := ParsePin(value)
		if err != nil {
			if !reflect.DeepEqual(pin, Pin{}) {
				t.Errorf("ParsePin(%q) returned %+v beside the error %v", value, pin, err)
			}
			return
		}
		if pin.All == (len(pin.Names) > 0) {
			t.Errorf("ParsePin(%q) = %+v: either all or names, never both or neither", value, pin)
		}
		if !slices.IsSorted(pin.Names) || len(slices.Compact(slices.Clone(pin.Names))) != len(pin.Names) {
			t.Errorf("ParsePin(%q) = %+v: names are not sorted, or repeat", value, pin)
		}
		for _, name := range pin.Names {
			if !strings.Contains(value, name) {
				t.Errorf("ParsePin(%q) = %+v: %q was never written", value, pin, name)
			}
		}
		again, err := ParsePin(pin.String())
		if err != nil || !reflect.DeepEqual(again, pin) {
			t.Errorf("ParsePin(%q).String() reads as %+v, %v, want %+v", value, again, err, pin)
		}
	})
}

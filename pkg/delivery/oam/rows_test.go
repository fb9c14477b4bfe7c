package oam

import (
	"testing"
)

// Rows of KubeVela's document that its own sample shows.

func TestK2RulesHoldDifferentSplitsAtOnce(t *testing.T) {
	d := sample(t, "document")
	d.Revisions[0].Host, d.Revisions[1].Host = "", ""
	rules := render(t, "example-app", d, both).Rules[0].Object["spec"].(map[string]any)["http"].([]any)
	got := map[string]string{}
	for _, rule := range rules {
		of := rule.(map[string]any)
		got[of["name"].(string)] = destinations(of["route"])
	}
	for name, want := range map[string]string{"web": "example-app-v1:50 example-app-v2:50", "mobile": "example-app-v1:90 example-app-v2:10"} {
		if got[name] != want {
			t.Errorf("rule %s: %s, want %s", name, got[name], want)
		}
	}
}

func TestK16WithoutAPlacementAllOfARevisionIsInTheOwnCluster(t *testing.T) {
	of := sample(t, "document").Revisions[1]
	if len(of.Entries) != 1 || !of.Entries[0].Home() {
		t.Fatalf("its parts are %+v", of.Entries)
	}
	size, missing := Place(of, map[string]int32{"Deployment/web": 7}, picker())
	if want := (Size{"north": {"Deployment/web": 7}}); !size.Equal(want) || len(missing) > 0 {
		t.Errorf("%v, missing %v, want %v", size, missing, want)
	}
}

func TestK32ServicesAreCalledByTheConventionOfTheDocument(t *testing.T) {
	for _, of := range sample(t, "document").Revisions {
		if want := "example-app-v" + of.Name; of.Service() != want {
			t.Errorf("that of revision %s is %s, want %s", of.Name, of.Service(), want)
		}
	}
	content, err := Prepare(first, objects(t, web, shop))
	if err != nil {
		t.Fatal(err)
	}
	if got := content.Front.GetName(); got != "example-app" {
		t.Errorf("that in front of all is %s", got)
	}
}

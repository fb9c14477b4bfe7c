package v1alpha1

import "testing"

func TestHashManifest(t *testing.T) {
	hash := func(manifest string) string {
		t.Helper()
		got, err := HashManifest([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	one := hash(`{"kind":"ConfigMap","data":{"a":"1","b":"2"}}`)
	if other := hash(`{ "data": {"b":"2", "a":"1"}, "kind":"ConfigMap" }`); other != one {
		t.Errorf("the order of keys and spaces count: %s and %s", one, other)
	}
	if other := hash(`{"kind":"ConfigMap","data":{"a":"1","b":"3"}}`); other == one {
		t.Error("another value has the same hash")
	}
	if _, err := HashManifest([]byte(`["no object"]`)); err == nil {
		t.Error("a list was hashed as a manifest")
	}
}

func TestHashesKeepPartsApart(t *testing.T) {
	if HashObjects([]string{"ab", "c"}) == HashObjects([]string{"a", "bc"}) {
		t.Error("parts run into each other")
	}
	if HashObjects([]string{"a", "b"}) == HashObjects([]string{"b", "a"}) {
		t.Error("the order of objects does not count")
	}
	east, west := RevisionTarget{Name: "east", Hash: "1"}, RevisionTarget{Name: "west", Hash: "1"}
	if HashRevision([]RevisionTarget{east}) == HashRevision([]RevisionTarget{west}) {
		t.Error("the names of targets do not count")
	}
}

func TestTheHashOfARevisionIsAboutTheFilesThatPluginsDeliver(t *testing.T) {
	targets := HashRevision([]RevisionTarget{{Name: "default", Hash: HashObjects(nil)}})
	if HashWithContent(targets, "") != targets {
		t.Error("without such files the hash is another one than before there were any")
	}
	if a, b := HashWithContent(targets, "a"), HashWithContent(targets, "b"); a == b || a == targets || a != HashWithContent(targets, "a") {
		t.Errorf("hashes %s and %s", a, b)
	}
}

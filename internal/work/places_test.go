package work

import "testing"

func TestNobodyTakesThePlacesOfAll(t *testing.T) {
	places := NewPlaces(3, 2)
	takes := func(owner string, want bool) func() {
		t.Helper()
		free, ok := places.Take(owner)
		if ok != want {
			t.Fatalf("%s takes a place: %t, want %t", owner, ok, want)
		}
		return free
	}
	first := takes("shop", true)
	second := takes("shop", true)
	takes("shop", false) // it has its two
	bank := takes("bank", true)
	takes("bank", false) // all three are taken
	first()
	takes("bank", true)
	second()
	bank()
	takes("shop", true)
}

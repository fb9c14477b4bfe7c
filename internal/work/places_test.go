package work

import (
	"testing"
	"time"
)

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

func TestPlacesAreGivenOutInTheOrderInWhichOwnersHaveBegunToAsk(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	places := NewPlaces(3, 2)
	places.now = func() time.Time { return now }
	takes := func(owner string, want bool) func() {
		t.Helper()
		free, ok := places.Take(owner)
		if ok != want {
			t.Fatalf("%s takes a place: %t, want %t", owner, ok, want)
		}
		return free
	}
	first := takes("greedy", true)
	second, third := takes("greedy", true), takes("keen", true)
	takes("shop", false)
	for range 100 {
		takes("keen", false)
		takes("greedy", false) // it has its two
	}
	first()
	takes("keen", false) // it has one, and has asked for another after the shop
	takes("greedy", false)
	shop := takes("shop", true)
	second()
	takes("shop", false) // it is the turn of another
	fourth := takes("keen", true)
	third()
	takes("bank", false) // after greedy and shop
	now = now.Add(asking + time.Second)
	bank := takes("bank", true) // nobody else has asked for long
	shop()
	fourth()
	bank()
	takes("greedy", true)
	takes("greedy", true)
	takes("shop", true)
}

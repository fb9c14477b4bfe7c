package work

import "testing"

func TestOneOwnerTakesNotAllSlots(t *testing.T) {
	slots := NewSlots(3, 2)
	var mine []func()
	for range 2 {
		free, ok := slots.Take("mine")
		if !ok {
			t.Fatal("there is no slot")
		}
		mine = append(mine, free)
	}
	if _, ok := slots.Take("mine"); ok {
		t.Error("one owner has more than its own")
	}
	theirs, ok := slots.Take("theirs")
	if !ok {
		t.Fatal("one owner holds up another one")
	}
	if _, ok := slots.Take("others"); ok {
		t.Error("there are more than all")
	}
	mine[0]()
	if _, ok := slots.Take("others"); !ok {
		t.Error("one that was freed is not given again")
	}
	theirs()
	mine[1]()
	if _, kept := slots.taken["mine"]; kept || slots.sum != 1 {
		t.Errorf("kept are %v, %d in all", slots.taken, slots.sum)
	}
}

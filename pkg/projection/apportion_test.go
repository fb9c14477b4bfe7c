package projection

import (
	"maps"
	"math"
	"testing"
	"testing/quick"
)

func TestApportion(t *testing.T) {
	tests := map[string]struct {
		amount  int64
		weights map[string]int64
		want    map[string]int64
	}{
		"by weight":                               {6, map[string]int64{"east": 1, "west": 2}, map[string]int64{"east": 2, "west": 4}},
		"the remainder goes to the largest part":  {5, map[string]int64{"east": 1, "west": 2}, map[string]int64{"east": 2, "west": 3}},
		"a tie goes to the larger weight":         {2, map[string]int64{"a": 1, "b": 3}, map[string]int64{"a": 0, "b": 2}},
		"and then to the first name":              {1, map[string]int64{"west": 3, "east": 3}, map[string]int64{"east": 1, "west": 0}},
		"who has no weight gets nothing":          {3, map[string]int64{"east": 0, "north": -4, "west": 1}, map[string]int64{"west": 3}},
		"nothing is nothing for all":              {0, map[string]int64{"east": 1}, map[string]int64{}},
		"without any weight nobody gets anything": {3, nil, map[string]int64{}},
		"amounts and weights may be as large as they come": {
			math.MaxInt64, map[string]int64{"east": math.MaxInt64, "west": math.MaxInt64},
			map[string]int64{"east": math.MaxInt64/2 + 1, "west": math.MaxInt64 / 2},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := apportion(test.amount, test.weights); !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestPartsSumToTheAmount is what makes a divided budget or quota safe. No part is more than one away from the exact one.
func TestPartsSumToTheAmount(t *testing.T) {
	property := func(amount uint16, a, b, c uint8) bool {
		weights := map[string]int64{"a": int64(a), "b": int64(b), "c": int64(c)}
		total := int64(a) + int64(b) + int64(c)
		var got int64
		for name, part := range apportion(int64(amount), weights) {
			got += part
			if off := part*total - int64(amount)*weights[name]; off <= -total || off >= total {
				t.Logf("%s has %d of %d by %v", name, part, amount, weights)
				return false
			}
		}
		return total == 0 && got == 0 || got == int64(amount)
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

package portion

import (
	"math"
	"testing"

	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestDivide(t *testing.T) {
	type weights = map[string]int64
	for name, tc := range map[string]struct {
		replicas int32
		weights  weights
		capacity map[string]int64
		last     placement.Decision
		want     placement.Decision
		unplaced int32
	}{
		"the remainder goes to the largest fraction, not to the first cluster": {
			replicas: 5, weights: weights{"east": 1, "west": 2},
			want: build.Shares("east", 2, "west", 3),
		},
		"a tie goes to whoever has the replica already": {
			replicas: 5, weights: weights{"east": 1, "west": 1}, last: build.Shares("east", 2, "west", 3),
			want: build.Shares("east", 2, "west", 3),
		},
		"a tie goes to the larger weight": {
			replicas: 2, weights: weights{"east": 1, "west": 3},
			want: build.Shares("west", 2),
		},
		"a tie of equal weights goes to the first name": {
			replicas: 5, weights: weights{"west": 1, "east": 1},
			want: build.Shares("east", 3, "west", 2),
		},
		"adding a replica takes none away, where the plain largest remainder would": {
			replicas: 11, weights: weights{"a": 6, "b": 6, "c": 2}, last: build.Shares("a", 4, "b", 4, "c", 2),
			want: build.Shares("a", 5, "b", 4, "c", 2),
		},
		"the plain largest remainder of the same": {
			replicas: 11, weights: weights{"a": 6, "b": 6, "c": 2},
			want: build.Shares("a", 5, "b", 5, "c", 1),
		},
		"capacity bounds a share and the others divide the rest": {
			replicas: 9, weights: weights{"a": 1, "b": 1, "c": 1}, capacity: map[string]int64{"a": 1},
			want: build.Shares("a", 1, "b", 4, "c", 4),
		},
		"a bound that is met only after others were met counts too": {
			replicas: 12, weights: weights{"a": 1, "b": 1, "c": 1}, capacity: map[string]int64{"a": 1, "b": 5},
			want: build.Shares("a", 1, "b", 5, "c", 6),
		},
		"what exceeds all capacity is unplaced": {
			replicas: 9, weights: weights{"a": 1, "b": 2}, capacity: map[string]int64{"a": 1, "b": 3},
			want: build.Shares("a", 1, "b", 3), unplaced: 5,
		},
		"a capacity below none is none": {
			replicas: 3, weights: weights{"a": 1, "b": 2}, capacity: map[string]int64{"a": -7},
			want: build.Shares("b", 3),
		},
		"without weight nothing is placed": {
			replicas: 3, weights: weights{"a": 0, "b": -2},
			unplaced: 3,
		},
		"without clusters nothing is placed": {
			replicas: 3, unplaced: 3,
		},
		"no replicas give no shares": {
			replicas: 0, weights: weights{"a": 1}, last: build.Shares("a", 3),
		},
		"a negative number of replicas gives no shares": {
			replicas: -4, weights: weights{"a": 1},
		},
		"the largest numbers do not overflow": {
			replicas: math.MaxInt32, weights: weights{"a": math.MaxInt64, "b": math.MaxInt64, "c": math.MaxInt64},
			want: build.Shares("a", 715827883, "b", 715827882, "c", 715827882),
		},
		"fewer replicas than clusters": {
			replicas: 1, weights: weights{"a": 1, "b": 2, "c": 2}, last: build.Shares("c", 1),
			want: build.Shares("c", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, unplaced := Divide(tc.replicas, tc.weights, tc.capacity, tc.last)
			if !got.Equal(tc.want) || unplaced != tc.unplaced {
				t.Errorf("got %s and %d unplaced, want %s and %d", got, unplaced, tc.want, tc.unplaced)
			}
		})
	}
}

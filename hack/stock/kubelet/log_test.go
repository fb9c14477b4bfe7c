package kubelet

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestPrintLogs(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	lines := []logLine{
		{at: noon.Add(-2 * time.Minute), text: "one"},
		{at: noon.Add(-1 * time.Minute), text: "two"},
		{at: noon, text: "three"},
	}
	tests := map[string]struct {
		options corev1.PodLogOptions
		want    string
	}{
		"everything is printed by default": {
			want: "one\ntwo\nthree\n",
		},
		"the tail is its last lines": {
			options: corev1.PodLogOptions{TailLines: ptr.To[int64](2)},
			want:    "two\nthree\n",
		},
		"a tail longer than the log is all of it": {
			options: corev1.PodLogOptions{TailLines: ptr.To[int64](9)},
			want:    "one\ntwo\nthree\n",
		},
		"a tail of nothing is nothing": {
			options: corev1.PodLogOptions{TailLines: ptr.To[int64](0)},
		},
		"older lines than asked for are left out": {
			options: corev1.PodLogOptions{SinceSeconds: ptr.To[int64](90)},
			want:    "two\nthree\n",
		},
		"a point in time does the same": {
			options: corev1.PodLogOptions{SinceTime: ptr.To(metav1.NewTime(noon))},
			want:    "three\n",
		},
		"bytes are cut at the limit": {
			options: corev1.PodLogOptions{LimitBytes: ptr.To[int64](6)},
			want:    "one\ntw",
		},
		"timestamps go first": {
			options: corev1.PodLogOptions{TailLines: ptr.To[int64](1), Timestamps: true},
			want:    "2026-11-20T12:00:00Z three\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			printer := &logPrinter{
				out: &got, flush: func() error { return nil }, timestamps: tt.options.Timestamps, limit: tt.options.LimitBytes,
			}
			err := printer.print(tail(since(lines, &tt.options, noon), tt.options.TailLines))
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if got.String() != tt.want {
				t.Errorf("printed %q, want %q", got.String(), tt.want)
			}
		})
	}
}

func TestFollowPrintsWhatComesUntilTheEnd(t *testing.T) {
	log := newLogBuffer()
	log.append(time.Now(), "before")
	start := log.len()
	ctx, cancel := context.WithCancel(t.Context())
	printed := make(chan string)
	followed := make(chan error)
	go func() {
		followed <- log.follow(ctx, start, func(lines []logLine) error {
			for _, line := range lines {
				printed <- line.text
			}
			return nil
		})
	}()
	for _, want := range []string{"first", "second"} {
		log.append(time.Now(), want)
		if got := <-printed; got != want {
			t.Fatalf("printed %q, want %q", got, want)
		}
	}
	cancel()
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
}

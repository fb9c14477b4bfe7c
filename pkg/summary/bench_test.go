package summary

import "testing"

func BenchmarkDeployment(b *testing.B) {
	in, decision := web(5), shares(3, 2)
	reports := map[string]Report{"east": done(3), "west": progress(2, 1, 1, reasonUpdated)}
	b.ReportAllocs()
	for b.Loop() {
		Deployment(in, Input{Decision: decision, Reports: reports, Now: now})
	}
}

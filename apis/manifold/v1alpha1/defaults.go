package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_Division makes Divide measure by free capacity where nothing else is asked for. Duplicate measures nothing, so its
// by stays empty.
func SetDefaults_Division(division *Division) {
	if division.Type == Divide && division.By == "" {
		division.By = ByCapacity
	}
}

// SetDefaults_SpreadConstraint makes a constraint strict where nothing else is asked for.
func SetDefaults_SpreadConstraint(constraint *SpreadConstraint) {
	if constraint.MaxSkew == 0 {
		constraint.MaxSkew = 1
	}
	if constraint.WhenUnsatisfiable == "" {
		constraint.WhenUnsatisfiable = DoNotPlace
	}
}

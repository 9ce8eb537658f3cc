package rows

import (
	"slices"
	"strconv"
	"strings"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Doctor is the answer of doctor.
type Doctor struct {
	Healthy  bool       `json:"healthy" doc:"no finding is worse than info"`
	Findings []Finding  `json:"findings" doc:"worst first"`
	Ran      int        `json:"ran" doc:"checks that ran"`
	Skipped  []Skipped  `json:"skipped" doc:"checks that could not run"`
	Errors   []ErrorRow `json:"errors" doc:"what could not be read"`
}

// Skipped is a check that could not run.
type Skipped struct {
	Check  string `json:"check"`
	Reason string `json:"reason"`
}

// OfDiagnosis makes the answer of doctor. Findings below the given severity are left out.
func OfDiagnosis(d check.Diagnosis, problems []model.Problem, least model.Severity) Doctor {
	out := Doctor{Healthy: check.Healthy(d.Findings), Findings: []Finding{}, Ran: len(d.Ran), Skipped: []Skipped{}, Errors: Errors(problems)}
	for _, f := range d.Findings {
		if check.AtLeast(f.Severity, least) {
			out.Findings = append(out.Findings, Finding{ID: f.ID, Severity: string(f.Severity), Object: f.Object, Evidence: f.Evidence, Fix: f.Fix})
		}
	}
	for _, s := range d.Skipped {
		out.Skipped = append(out.Skipped, Skipped{s.Check, s.Reason})
	}
	return out
}

// CheckInfo is one check that doctor knows.
type CheckInfo struct {
	ID       string   `json:"id"`
	Severity string   `json:"severity" doc:"critical, warning or info: of its findings"`
	Summary  string   `json:"summary"`
	Needs    []string `json:"needs" doc:"what it reads: brokers, zookeeper, transitions, configs, log-dirs, positions, groups, ensemble"`
	Means    string   `json:"means"`
	Causes   string   `json:"causes"`
	Remedy   string   `json:"remedy"`
}

// CheckKind describes CheckInfo.
var CheckKind = Kind[CheckInfo]{
	Name: "Check", Title: "checks",
	ID: func(c CheckInfo) string { return c.ID },
	Columns: []Column[CheckInfo]{
		{Name: "ID", Cell: func(c CheckInfo) string { return c.ID }},
		{Name: "SEVERITY", Cell: func(c CheckInfo) string { return c.Severity }},
		{Name: "NEEDS", Cell: func(c CheckInfo) string { return strings.Join(c.Needs, ",") }},
		{Name: "SUMMARY", Cell: func(c CheckInfo) string { return c.Summary }},
		{Name: "REMEDY", Wide: true, Cell: func(c CheckInfo) string { return c.Remedy }},
	},
}

// OfCheck turns a check into a row.
func OfCheck(c check.Check) CheckInfo {
	out := CheckInfo{ID: c.ID, Severity: string(c.Severity), Summary: c.Summary, Needs: []string{}, Means: c.Means, Causes: c.Causes, Remedy: c.Remedy}
	for _, n := range c.Needs {
		out.Needs = append(out.Needs, string(n))
	}
	return out
}

// Difference is one field about which the sources disagree.
type Difference struct {
	Topic      string            `json:"topic" doc:"empty for a field of the cluster"`
	Partition  int32             `json:"partition" doc:"-1 for a field of the cluster or of a topic"`
	Field      string            `json:"field" doc:"clusterId, controller, brokers, topicId, exists, leader, leaderEpoch, isr or replicas"`
	ZooKeeper  string            `json:"zookeeper" doc:"- when not read or not known there"`
	Controller string            `json:"controller" doc:"what the controller's metadata says; - when it did not answer"`
	Brokers    map[string]string `json:"brokers" doc:"what each broker that answered says, by id"`
}

// Object names the cluster, the topic or the partition.
func (d Difference) Object() string {
	switch {
	case d.Topic == "":
		return "cluster"
	case d.Partition < 0:
		return "topic " + d.Topic
	}
	return d.Topic + "-" + itoa(d.Partition)
}

// DifferenceKind describes Difference.
var DifferenceKind = Kind[Difference]{
	Name: "Difference", Title: "differences",
	ID: func(d Difference) string { return d.Object() + "/" + d.Field },
	Columns: []Column[Difference]{
		{Name: "OBJECT", Cell: func(d Difference) string { return d.Object() }},
		{Name: "FIELD", Cell: func(d Difference) string { return d.Field }},
		{Name: "ZOOKEEPER", Cell: func(d Difference) string { return d.ZooKeeper }},
		{Name: "CONTROLLER", Cell: func(d Difference) string { return d.Controller }},
		{Name: "BROKERS", Cell: func(d Difference) string { return d.perBroker() }},
	},
}

// perBroker writes each value with the brokers that say it: 1,3: 7; 2: 6.
func (d Difference) perBroker() string {
	by := map[string][]cluster.BrokerID{}
	var values []string
	for id, v := range d.Brokers {
		n, _ := strconv.Atoi(id) // ids are numbers: OfDifference wrote them
		if by[v] == nil {
			values = append(values, v)
		}
		by[v] = append(by[v], cluster.BrokerID(n))
	}
	for _, ids := range by {
		slices.Sort(ids)
	}
	slices.SortFunc(values, func(a, b string) int { return int(by[a][0]) - int(by[b][0]) })
	var parts []string
	for _, v := range values {
		parts = append(parts, "broker "+check.IDList(by[v])+" has "+v)
	}
	return strings.Join(parts, "; ")
}

// OfDifference turns a difference into a row.
func OfDifference(d check.Difference) Difference {
	out := Difference{Topic: d.Topic, Partition: d.Partition, Field: d.Field, ZooKeeper: d.ZooKeeper, Controller: d.Controller, Brokers: map[string]string{}}
	for id, v := range d.Brokers {
		out.Brokers[itoa(id)] = v
	}
	return out
}

package plan

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// StoredFacts is what ZooKeeper tells before users, quotas or ACLs are read or written there, past the brokers.
type StoredFacts struct {
	Address    string             // of ZooKeeper with the chroot, for messages
	Registered []cluster.BrokerID // brokers with a session
	Used       bool               // anything of Kafka is there
	KRaft      bool               // the cluster moves, or has moved, to KRaft: ZooKeeper is its copy at most
	Below      []string           // when nothing of Kafka is there: paths below which something is
}

// StoredRefusal is why ZooKeeper is not read or written past the brokers.
type StoredRefusal struct {
	Why, Hint string
	NoCluster bool // there is none at this address
	BadInput  bool // the address is most likely not the one that is meant
}

// Error returns the reason.
func (r *StoredRefusal) Error() string { return r.Why }

// JudgeStoredRead decides whether ZooKeeper can answer instead of the brokers; note is to be said with the answer.
func JudgeStoredRead(f *StoredFacts) (note string, err error) {
	switch {
	case !f.Used:
		return "", f.elsewhere()
	case f.KRaft:
		return "the cluster moves, or has moved, to KRaft: what ZooKeeper holds may be old", nil
	}
	return "", nil
}

// JudgeStoredWrite decides whether ZooKeeper may be written although no broker answers. It may when no broker is
// registered, as before the first one starts: nobody else can do it then, and nobody is passed by. Whatever speaks
// against it needs breakGlass. note is to be said with the plan.
func JudgeStoredWrite(f *StoredFacts, breakGlass bool) (note string, err error) {
	const anyway = "--break-glass writes ZooKeeper all the same"
	switch {
	case breakGlass && f.KRaft:
		return "the cluster moves, or has moved, to KRaft: its controllers may never read this, or overwrite it", nil
	case breakGlass && len(f.Registered) > 0:
		return fmt.Sprintf("%s registered: they learn of it by the notification, and check nothing", brokersAre(f.Registered)), nil
	case f.KRaft:
		return "", &StoredRefusal{Why: "the cluster moves, or has moved, to KRaft, whose controllers own users, quotas and ACLs", Hint: "name a broker with -b; " + anyway}
	case len(f.Registered) > 0:
		return "", &StoredRefusal{Why: brokersAre(f.Registered) + " registered in ZooKeeper, but none of them answers", Hint: anyway + ", with the notification that brokers wait for; nothing checks it then"}
	case !f.Used && len(f.Below) > 0 && !breakGlass:
		return "", f.elsewhere()
	case !f.Used:
		return fmt.Sprintf("ZooKeeper %s holds nothing of Kafka yet: this begins a new cluster there (brokers must have the same zookeeper.connect)", f.Address), nil
	}
	return "", nil
}

// elsewhere is the refusal of an address without a cluster.
func (f *StoredFacts) elsewhere() *StoredRefusal {
	r := &StoredRefusal{NoCluster: true, Why: fmt.Sprintf("ZooKeeper %s holds no Kafka cluster", f.Address), Hint: "if the cluster lives below a chroot, add it: -z HOST:PORT/chroot (kctl zk ls / shows what is there)"}
	if len(f.Below) > 0 {
		r.BadInput = true
		r.Why += ", but there is one below " + strings.Join(f.Below, " and ")
		r.Hint = fmt.Sprintf("-z %s%s", strings.TrimSuffix(f.Address, "/"), f.Below[0])
	}
	return r
}

func brokersAre(ids []cluster.BrokerID) string {
	const most = 5
	var names []string
	for _, id := range ids[:min(len(ids), most)] {
		names = append(names, strconv.Itoa(int(id)))
	}
	text := strings.Join(names, ", ")
	if len(ids) > most {
		text += fmt.Sprintf(" and %d more", len(ids)-most)
	}
	if len(ids) == 1 {
		return "broker " + text + " is"
	}
	return "brokers " + text + " are"
}

// CheckStoredName refuses a name of a user, client id or resource that cannot be the name of a znode.
func CheckStoredName(what, name string) error {
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("%s %q cannot be stored in ZooKeeper", what, name)
	}
	return nil
}

// CheckStoredACL refuses what Kafka's AclAuthorizer refuses, or ZooKeeper cannot hold.
func CheckStoredACL(a model.ACL) error {
	if strings.Contains(a.ResourceName, "/") {
		return fmt.Errorf("%s %q: Apache Kafka in ZooKeeper mode takes no slash in the name of a resource", strings.ToLower(a.ResourceType), a.ResourceName)
	}
	return CheckStoredName(strings.ToLower(a.ResourceType), a.ResourceName)
}

// CheckStoredQuotas refuses what brokers could not read from ZooKeeper: they take whole numbers only for rates of bytes
// and connections, and addresses as they are.
func CheckStoredQuotas(e model.QuotaEntity, changes []QuotaChange) error {
	for _, p := range [][2]string{{"user", e.User}, {"client id", e.ClientID}} {
		if p[1] != "" {
			if err := CheckStoredName(p[0], p[1]); err != nil {
				return err
			}
		}
	}
	if e.IP != "" && e.IP != model.QuotaDefault {
		if _, err := netip.ParseAddr(e.IP); err != nil {
			return fmt.Errorf("--ip %q is not an address", e.IP)
		}
	}
	for _, ch := range changes {
		if ch.After == nil {
			continue
		}
		if _, err := StoredQuota(ch.Key, *ch.After); err != nil {
			return err
		}
	}
	return nil
}

// StoredQuota writes a limit as Kafka stores it: rates of bytes and connections as whole numbers, the others as Java
// writes a double.
func StoredQuota(key string, v float64) (string, error) {
	most := float64(math.MaxInt64)
	switch key {
	case "producer_byte_rate", "consumer_byte_rate":
	case "connection_creation_rate":
		most = math.MaxInt32
	default:
		return javaDouble(v), nil
	}
	if v != math.Trunc(v) || v < 0 || v >= most && v != math.MaxInt32 {
		return "", fmt.Errorf("quota %s: %s is not a whole number that brokers can read", key, QuotaValue(v))
	}
	return strconv.FormatInt(int64(v), 10), nil
}

// javaDouble is Java's Double.toString of a finite number that is not below zero.
func javaDouble(v float64) string {
	if v == 0 || v >= 1e-3 && v < 1e7 {
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'E', -1, 64), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent) // FormatFloat wrote it
	return mantissa + "E" + strconv.Itoa(n)
}

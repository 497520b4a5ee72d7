package cost

import "github.com/inspan/inspan/llm"

// Most of a prompt is sent again at each turn. Charging each part each time would take time quadratic in the length
// of the session, so the parts that were sent before are leaves of a few trees: a cost for a whole tree is recorded
// at its root, and passed down when the trees are taken apart.

// node is a part of a prompt, or two adjacent nodes.
type node struct {
	size  int // tokens, at least 1
	leaf  *leaf
	kids  [2]*node
	owed  []owed
	order int // how many times it was joined
}

// leaf is a part of a prompt.
type leaf struct {
	cause Cause
	guess int  // tokens by our estimate
	size  int  // its tokens when it was first sent; before that, the guess
	sent  bool // the previous request had it unchanged
	again bool // an earlier request had it, perhaps in a longer form
	first int  // the first request with it
}

// owed is the amount that one group of bills has paid for a node, and its leaves have not been charged with.
type owed struct {
	to   *group
	paid [classes]paid
}

// paid is a number of tokens of one class, and their cost.
type paid struct {
	tokens int
	money  Money
}

// joined appends a leaf to nodes.
func joined(nodes []*node, l *leaf) []*node {
	n := &node{size: l.size, leaf: l}
	for k := len(nodes); k > 0 && nodes[k-1].order == n.order; k = len(nodes) {
		n = &node{size: nodes[k-1].size + n.size, kids: [2]*node{nodes[k-1], n}, order: n.order + 1}
		nodes = nodes[:k-1]
	}
	return append(nodes, n)
}

// owe records what a group has paid for the node.
func (n *node) owe(to *group, class int, p paid) {
	i := len(n.owed) - 1
	for i >= 0 && n.owed[i].to != to {
		i--
	}
	if i < 0 {
		i, n.owed = len(n.owed), append(n.owed, owed{to: to})
	}
	n.owed[i].paid[class].tokens += p.tokens
	n.owed[i].paid[class].money += p.money
}

// settle passes down what is owed, and charges the leaves with it.
func (n *node) settle() {
	for _, o := range n.owed {
		for class, p := range o.paid {
			if n.leaf != nil {
				o.to.add(n.leaf.charged(), class, p)
				continue
			}
			left := paid{tokens: portion(p.tokens, n.kids[0].size, n.size)}
			left.money = Money(portion(int(p.money), left.tokens, p.tokens))
			n.kids[0].owe(o.to, class, left)
			n.kids[1].owe(o.to, class, paid{p.tokens - left.tokens, p.money - left.money})
		}
	}
	n.owed = nil
	if n.leaf == nil {
		n.kids[0].settle()
		n.kids[1].settle()
	}
}

// spreading distributes the tokens of a prompt over its parts in order: first those read from a cache, then
// those written to one, then the others.
type spreading struct {
	to    *group
	used  []int // of each class
	money [classes]Money
	lost  int // tokens that the previous request had in the cache and this one did not read from it
	why   Cause
}

// over distributes the tokens between two places of the prompt over a node.
func (s *spreading) over(n *node, from, to int) {
	for from < to {
		class, begin, end := s.at(from)
		sent := n.leaf == nil || n.leaf.sent
		miss := sent && class != cached && s.lost > 0
		stop := min(to, end)
		if miss {
			stop = min(stop, from+s.lost)
		}
		if stop < to && n.leaf == nil {
			middle := from + portion(to-from, n.kids[0].size, n.size)
			s.over(n.kids[0], from, middle)
			s.over(n.kids[1], middle, to)
			return
		}
		cost := func(place int) int { return portion(int(s.money[class]), place-begin, end-begin) }
		p := paid{stop - from, Money(cost(stop) - cost(from))}
		switch {
		case miss:
			s.lost -= p.tokens
			s.to.add(s.why, class, p)
		case n.leaf != nil && !n.leaf.sent:
			s.to.add(n.leaf.charged(), class, p)
		default:
			n.owe(s.to, class, p)
		}
		from = stop
	}
}

// at returns the class of the token at a place of the prompt, and the first and last place of that class.
func (s *spreading) at(place int) (class, begin, end int) {
	for class = range output {
		if end = begin + s.used[class]; place < end {
			break
		}
		begin = end
	}
	return class, begin, end
}

// first returns the cause for the first sending of a call's result.
func (c Cause) first() Cause {
	if c.Kind == Again {
		c.Kind = Result
	}
	return c
}

// charged returns the cause that pays for the leaf.
func (l *leaf) charged() Cause {
	c := l.cause
	if c.Kind == Result && (l.again || l.sent) {
		c.Kind = Again
	}
	return c
}

// usage returns a usage of so many tokens of a class.
func usage(class, tokens int) llm.Usage {
	switch class {
	case cached:
		return llm.Usage{CacheRead: tokens}
	case written:
		return llm.Usage{CacheWrite: tokens}
	case fresh:
		return llm.Usage{Input: tokens}
	}
	return llm.Usage{Output: tokens}
}

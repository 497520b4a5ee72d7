package managed

import (
	"slices"

	"github.com/inspan/inspan/internal/service/server"
)

// The webhooks of the server at the path of the wire's organization webhooks, for its admins.

func webhookEndpoints() []endpoint {
	admin := func(f func(*door) (any, error)) func(*door) (any, error) {
		return func(d *door) (any, error) {
			if err := d.Needs(server.Admin); err != nil {
				return nil, err
			}
			return f(d)
		}
	}
	const at = "organizations/webhooks"
	return []endpoint{
		post(at, admin(reading(func(d *door, in server.NewWebhook) (any, error) { return d.MakeWebhook(in) }))),
		get(at, admin((*door).webhooks), "limit", "order", "after_id", "before_id"),
		get(at+"/{id}", admin(func(d *door) (any, error) { return d.Webhook(d.r.PathValue("id")) })),
		post(at+"/{id}", admin(reading(func(d *door, in server.NewWebhook) (any, error) {
			in.ID = d.r.PathValue("id")
			return d.ChangeWebhook(in)
		}))),
		del(at+"/{id}", admin(func(d *door) (any, error) {
			id := d.r.PathValue("id")
			return map[string]any{"id": id, "type": "webhook_endpoint_deleted"}, d.RemoveWebhook(id)
		})),
		act(at+"/{id}/regenerate_signing_secret", admin(func(d *door) (any, error) {
			secret, err := d.RenewWebhook(d.r.PathValue("id"))
			return map[string]any{"signing_secret": secret}, err
		})),
	}
}

func (d *door) webhooks() (any, error) {
	order, err := d.choice("order", "asc", "desc")
	if err != nil {
		return nil, err
	}
	limit, err := d.number("limit", usualPage, 0, 100)
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = usualPage
	}
	all := d.Webhooks()
	if order != "asc" {
		slices.Reverse(all)
	}
	for _, name := range []string{"after_id", "before_id"} {
		id := d.query.Get(name)
		if id == "" {
			continue
		}
		at, was := d.WebhookAt(id)
		if !was {
			return nil, invalid(name, "no such webhook", "an id of the list")
		}
		older := (name == "after_id") != (order == "asc")
		all = slices.DeleteFunc(all, func(w server.Webhook) bool { return (w.Compare(at) >= 0) == older || w.ID == id })
	}
	out := struct {
		Data  []server.Webhook `json:"data"`
		More  bool             `json:"has_more"`
		First *string          `json:"first_id"`
		Last  *string          `json:"last_id"`
	}{all[:min(limit, len(all))], len(all) > limit, nil, nil}
	if n := len(out.Data); n > 0 {
		out.First, out.Last = &out.Data[0].ID, &out.Data[n-1].ID
	}
	return out, nil
}

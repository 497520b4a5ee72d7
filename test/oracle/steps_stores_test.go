package oracle

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
)

// deploymentSteps are those of deployments and their runs.
func deploymentSteps() map[string]step {
	deploy := func(s *script, expression, zone string) anthropic.BetaDeploymentNewParams {
		return anthropic.BetaDeploymentNewParams{
			Name: "nightly", Agent: anthropic.BetaDeploymentNewParamsAgentUnion{OfString: param.NewOpt(s.agent)}, EnvironmentID: s.env,
			InitialEvents: []anthropic.BetaManagedAgentsDeploymentInitialEventParamsUnion{
				{OfSystemMessage: &anthropic.BetaManagedAgentsSystemMessageEventParams{
					Type: "system.message", Content: []anthropic.BetaManagedAgentsSystemContentBlockParam{{Type: "text", Text: "Be brief."}},
				}},
				{OfUserMessage: message("say: by itself").OfUserMessage},
			},
			Schedule: anthropic.BetaManagedAgentsScheduleParams{Type: "cron", Expression: expression, Timezone: zone},
			Metadata: map[string]string{"team": "a"},
		}
	}
	return map[string]step{
		"create a deployment": func(ctx context.Context, s *script) string {
			s.deployment = must(s.client.Beta.Deployments.New(ctx, deploy(s, "30 2 * * 1-5", "Europe/Berlin")))
			d := s.deployment
			return outcome("deployment", d.ID, "status", d.Status, "version", d.Agent.Version, "team", d.Metadata["team"], "expression", d.Schedule.Expression,
				"zone", d.Schedule.Timezone, "upcoming", len(d.Schedule.UpcomingRunsAt), "begins with", d.InitialEvents[1].AsUserMessage().Content[0].Text)
		},
		"refuse a schedule": func(ctx context.Context, s *script) string {
			return outcome("expression", refusal(s.client.Beta.Deployments.New(ctx, deploy(s, "@daily", "UTC"))),
				"zone", refusal(s.client.Beta.Deployments.New(ctx, deploy(s, "0 0 * * *", "Mars"))))
		},
		"update, read and list deployments": func(ctx context.Context, s *script) string {
			must(s.client.Beta.Deployments.Update(ctx, s.deployment.ID, anthropic.BetaDeploymentUpdateParams{
				Description: param.NewOpt("each night"),
				Schedule:    anthropic.BetaManagedAgentsScheduleParams{Type: "cron", Expression: "0 3 * * *", Timezone: "UTC"},
			}))
			got := must(s.client.Beta.Deployments.Get(ctx, s.deployment.ID, anthropic.BetaDeploymentGetParams{}))
			list := must(s.client.Beta.Deployments.List(ctx, anthropic.BetaDeploymentListParams{
				AgentID: param.NewOpt(s.agent), Status: anthropic.BetaManagedAgentsDeploymentStatusActive,
			}))
			return outcome("description", got.Description, "hour", got.Schedule.UpcomingRunsAt[0].UTC().Hour(), "active", len(list.Data))
		},
		"run a deployment": func(ctx context.Context, s *script) string {
			s.run = must(s.client.Beta.Deployments.Run(ctx, s.deployment.ID, anthropic.BetaDeploymentRunParams{}))
			return outcome("run", s.run.ID, "trigger", s.run.TriggerContext.Type, "session", s.run.SessionID, "of", s.run.DeploymentID)
		},
		"read the session of a run": func(ctx context.Context, s *script) string {
			p := must(s.client.Beta.Sessions.Get(ctx, s.run.SessionID, anthropic.BetaSessionGetParams{}))
			return outcome("deployment", p.DeploymentID, "events", must(s.settled(ctx, p.ID)))
		},
		"pause and unpause a deployment": func(ctx context.Context, s *script) string {
			p := must(s.client.Beta.Deployments.Pause(ctx, s.deployment.ID, anthropic.BetaDeploymentPauseParams{}))
			u := must(s.client.Beta.Deployments.Unpause(ctx, s.deployment.ID, anthropic.BetaDeploymentUnpauseParams{}))
			return outcome("paused", p.Status, "why", p.PausedReason.Type, "then", u.Status)
		},
		"run a deployment of an archived agent": func(ctx context.Context, s *script) string {
			a := must(s.client.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{Name: "old", Model: model("script")}))
			p := deploy(s, "30 2 * * *", "UTC")
			p.Agent = anthropic.BetaDeploymentNewParamsAgentUnion{OfString: param.NewOpt(a.ID)}
			d := must(s.client.Beta.Deployments.New(ctx, p))
			must(s.client.Beta.Agents.Archive(ctx, a.ID, anthropic.BetaAgentArchiveParams{}))
			failed := must(s.client.Beta.Deployments.Run(ctx, d.ID, anthropic.BetaDeploymentRunParams{}))
			return outcome("error", failed.Error.AsAny().(anthropic.BetaManagedAgentsAgentArchivedRunError).Type, "session", failed.SessionID)
		},
		"read and list runs": func(ctx context.Context, s *script) string {
			got := must(s.client.Beta.DeploymentRuns.Get(ctx, s.run.ID, anthropic.BetaDeploymentRunGetParams{}))
			of := func(failed bool) int {
				return len(must(s.client.Beta.DeploymentRuns.List(ctx, anthropic.BetaDeploymentRunListParams{
					HasError: param.NewOpt(failed), TriggerType: "manual",
				})).Data)
			}
			return outcome("session", got.SessionID, "failed", of(true), "others", of(false))
		},
		"archive a deployment": func(ctx context.Context, s *script) string {
			d := must(s.client.Beta.Deployments.Archive(ctx, s.deployment.ID, anthropic.BetaDeploymentArchiveParams{}))
			return outcome("archived", !d.ArchivedAt.IsZero(), "upcoming", len(d.Schedule.UpcomingRunsAt),
				"run", refusal(s.client.Beta.Deployments.Run(ctx, d.ID, anthropic.BetaDeploymentRunParams{})))
		},
	}
}

// memorySteps are those of memory stores.
func memorySteps() map[string]step {
	mounted := func(ctx context.Context, s *script, access string) (*anthropic.BetaManagedAgentsSession, string) {
		p := must(s.session(ctx, anthropic.BetaSessionNewParamsResourceUnion{OfMemoryStore: &anthropic.BetaManagedAgentsMemoryStoreResourceParam{
			Type: "memory_store", MemoryStoreID: s.store.ID, Instructions: param.NewOpt("Look here first."),
			Access: anthropic.BetaManagedAgentsMemoryStoreResourceParamAccess(access),
		}}))
		return p, p.Resources[0].AsMemoryStore().MountPath
	}
	return map[string]step{
		"create and update a memory store": func(ctx context.Context, s *script) string {
			stores := s.client.Beta.MemoryStores
			s.store = must(stores.New(ctx, anthropic.BetaMemoryStoreNewParams{Name: "Team Notes", Metadata: map[string]string{"a": "b"}}))
			must(stores.Update(ctx, s.store.ID, anthropic.BetaMemoryStoreUpdateParams{Description: param.NewOpt("what we know")}))
			got := must(stores.Get(ctx, s.store.ID, anthropic.BetaMemoryStoreGetParams{}))
			list := must(stores.List(ctx, anthropic.BetaMemoryStoreListParams{}))
			return outcome("store", got.ID, "description", got.Description, "a", got.Metadata["a"], "stores", len(list.Data))
		},
		"create and update a memory": func(ctx context.Context, s *script) string {
			memories := s.client.Beta.MemoryStores.Memories
			s.memory = must(memories.New(ctx, s.store.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/a/one.md", Content: param.NewOpt("first")}))
			got := must(memories.Get(ctx, s.memory.ID, anthropic.BetaMemoryStoreMemoryGetParams{MemoryStoreID: s.store.ID}))
			change := anthropic.BetaMemoryStoreMemoryUpdateParams{
				MemoryStoreID: s.store.ID, Content: param.NewOpt("second"), View: "full",
				Precondition: anthropic.BetaManagedAgentsPreconditionParam{Type: "content_sha256", ContentSha256: param.NewOpt(got.ContentSha256)},
			}
			changed := must(memories.Update(ctx, s.memory.ID, change))
			return outcome("memory", s.memory.ID, "content", got.Content, "changed", changed.Content, "late", refusal(memories.Update(ctx, s.memory.ID, change)))
		},
		"list memories": func(ctx context.Context, s *script) string {
			memories := s.client.Beta.MemoryStores.Memories
			must(memories.New(ctx, s.store.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/b.md", Content: param.NewOpt("")}))
			var got []string
			pages := memories.ListAutoPaging(ctx, s.store.ID, anthropic.BetaMemoryStoreMemoryListParams{
				Depth: param.NewOpt[int64](1), Limit: param.NewOpt[int64](1),
			})
			for pages.Next() {
				got = append(got, pages.Current().Type+" "+pages.Current().Path)
			}
			return outcome("memories", must(got, pages.Err()))
		},
		"let an agent read and write memories": func(ctx context.Context, s *script) string {
			p, mount := mounted(ctx, s, "read_write")
			read := must(s.ran(ctx, p.ID, fmt.Sprintf(`call: memory_store {"command":"read","path":"%s/a/one.md"}`, mount)))
			wrote := must(s.ran(ctx, p.ID, fmt.Sprintf(`call: memory_store {"command":"write","path":"%s/c.md","content":"third"}`, mount)))
			versions := must(s.client.Beta.MemoryStores.MemoryVersions.List(ctx, s.store.ID, anthropic.BetaMemoryStoreMemoryVersionListParams{
				SessionID: param.NewOpt(p.ID), View: "full",
			}))
			return outcome("session", p.ID, "mount path", mount, "read", strings.Contains(read, "second"), "wrote", strings.Contains(wrote, "Created"),
				"versions", len(versions.Data), "text", versions.Data[0].Content, "by", versions.Data[0].CreatedBy.AsSessionActor().SessionID)
		},
		"mount a memory store for reading": func(ctx context.Context, s *script) string {
			p, mount := mounted(ctx, s, "read_only")
			wrote := must(s.ran(ctx, p.ID, fmt.Sprintf(`call: memory_store {"command":"write","path":"%s/d.md","content":"x"}`, mount)))
			return outcome("access", p.Resources[0].AsMemoryStore().Access, "refused", strings.Contains(wrote, "read-only"))
		},
		"redact a version": func(ctx context.Context, s *script) string {
			versions := s.client.Beta.MemoryStores.MemoryVersions
			list := must(versions.List(ctx, s.store.ID, anthropic.BetaMemoryStoreMemoryVersionListParams{
				MemoryID: param.NewOpt(s.memory.ID), Operation: "created",
			}))
			id := list.Data[0].ID
			must(versions.Redact(ctx, id, anthropic.BetaMemoryStoreMemoryVersionRedactParams{MemoryStoreID: s.store.ID}))
			got := must(versions.Get(ctx, id, anthropic.BetaMemoryStoreMemoryVersionGetParams{MemoryStoreID: s.store.ID}))
			return outcome("created", len(list.Data), "text", got.Content, "redacted", !got.RedactedAt.IsZero())
		},
		"delete a memory store": func(ctx context.Context, s *script) string {
			stores := s.client.Beta.MemoryStores
			gone := must(stores.Memories.Delete(ctx, s.memory.ID, anthropic.BetaMemoryStoreMemoryDeleteParams{MemoryStoreID: s.store.ID}))
			archived := must(stores.Archive(ctx, s.store.ID, anthropic.BetaMemoryStoreArchiveParams{}))
			late := refusal(stores.Memories.New(ctx, s.store.ID, anthropic.BetaMemoryStoreMemoryNewParams{Path: "/d", Content: param.NewOpt("")}))
			deleted := must(stores.Delete(ctx, s.store.ID, anthropic.BetaMemoryStoreDeleteParams{}))
			return outcome("memory", gone.ID, "archived", !archived.ArchivedAt.IsZero(), "late", late, "deleted", deleted.ID)
		},
	}
}

// fileSteps are the steps about files, and about the files and repositories of sessions.
func fileSteps() map[string]step {
	return map[string]step{
		"upload a file": func(ctx context.Context, s *script) string {
			files := s.client.Beta.Files
			s.file = must(files.Upload(ctx, anthropic.BetaFileUploadParams{
				File: anthropic.File(strings.NewReader("a,b"), "data.csv", "text/csv"), ExpiresInSeconds: param.NewOpt[int64](3600),
			}))
			list := must(files.List(ctx, anthropic.BetaFileListParams{}))
			got := must(files.GetMetadata(ctx, s.file.ID, anthropic.BetaFileGetMetadataParams{}))
			res := must(files.Download(ctx, s.file.ID, anthropic.BetaFileDownloadParams{}))
			defer res.Body.Close()
			return outcome("file", got.ID, "files", len(list.Data), "name", got.Filename, "type", got.MimeType,
				"content", string(must(io.ReadAll(res.Body))), "expires", !got.ExpiresAt.IsZero())
		},
		"give a session a file": func(ctx context.Context, s *script) string {
			s.filed = must(s.session(ctx, anthropic.BetaSessionNewParamsResourceUnion{OfFile: &anthropic.BetaManagedAgentsFileResourceParams{
				Type: "file", FileID: s.file.ID, MountPath: param.NewOpt("/workspace/in/data.csv"),
			}}))
			ran := must(s.ran(ctx, s.filed.ID, "bash: cat in/data.csv"))
			list := must(s.client.Beta.Files.List(ctx, anthropic.BetaFileListParams{ScopeID: param.NewOpt(s.filed.ID)}))
			return outcome("session", s.filed.ID, "read", strings.Contains(ran, "a,b"), "files", len(list.Data), "scope", list.Data[0].Scope.ID)
		},
		"add a file to a session": func(ctx context.Context, s *script) string {
			resources := s.client.Beta.Sessions.Resources
			added := must(resources.Add(ctx, s.filed.ID, anthropic.BetaSessionResourceAddParams{
				BetaManagedAgentsFileResourceParams: anthropic.BetaManagedAgentsFileResourceParams{
					Type: "file", FileID: s.file.ID, MountPath: param.NewOpt("/workspace/more"),
				},
			}))
			got := must(resources.Get(ctx, added.ID, anthropic.BetaSessionResourceGetParams{SessionID: s.filed.ID}))
			list := must(resources.List(ctx, s.filed.ID, anthropic.BetaSessionResourceListParams{}))
			ran := must(s.ran(ctx, s.filed.ID, "bash: cat more"))
			_, token := resources.Update(ctx, added.ID, anthropic.BetaSessionResourceUpdateParams{SessionID: s.filed.ID, AuthorizationToken: "x"})
			deleted := must(resources.Delete(ctx, added.ID, anthropic.BetaSessionResourceDeleteParams{SessionID: s.filed.ID}))
			return outcome("resource", added.ID, "path", got.AsFile().MountPath, "resources", len(list.Data), "read", strings.Contains(ran, "a,b"),
				"token", no(token), "deleted", deleted.ID)
		},
		"clone a repository": func(ctx context.Context, s *script) string {
			p := must(s.session(ctx, anthropic.BetaSessionNewParamsResourceUnion{
				OfGitHubRepository: &anthropic.BetaManagedAgentsGitHubRepositoryResourceParams{
					Type: "github_repository", URL: "file://" + s.repository,
					Checkout: anthropic.BetaManagedAgentsGitHubRepositoryResourceParamsCheckoutUnion{
						OfCommit: &anthropic.BetaManagedAgentsCommitCheckoutParam{Type: "commit", Sha: s.commit},
					},
				},
			}))
			ran := must(s.ran(ctx, p.ID, "bash: git -C repo log --format=%s"))
			r := p.Resources[0].AsGitHubRepository()
			_, late := s.client.Beta.Sessions.Resources.Update(ctx, r.ID, anthropic.BetaSessionResourceUpdateParams{
				SessionID: p.ID, AuthorizationToken: "x",
			})
			return outcome("the first", strings.Contains(ran, "the first"), "the second", strings.Contains(ran, "the second"),
				"at the commit", r.Checkout.Sha == s.commit, "late", no(late))
		},
		"delete a file": func(ctx context.Context, s *script) string {
			deleted := must(s.client.Beta.Files.Delete(ctx, s.file.ID, anthropic.BetaFileDeleteParams{}))
			return outcome("type", deleted.Type, "read", refusal(s.client.Beta.Files.GetMetadata(ctx, s.file.ID, anthropic.BetaFileGetMetadataParams{})))
		},
	}
}

// vaultSteps are those of vaults and credentials.
func vaultSteps() map[string]step {
	return map[string]step{
		"create, update and list vaults": func(ctx context.Context, s *script) string {
			vaults := s.client.Beta.Vaults
			s.vault = must(vaults.New(ctx, anthropic.BetaVaultNewParams{DisplayName: "Ann"}))
			must(vaults.Update(ctx, s.vault.ID, anthropic.BetaVaultUpdateParams{DisplayName: param.NewOpt("Bob")}))
			got := must(vaults.Get(ctx, s.vault.ID, anthropic.BetaVaultGetParams{}))
			return outcome("vault", got.ID, "name", got.DisplayName, "vaults", len(must(vaults.List(ctx, anthropic.BetaVaultListParams{})).Data))
		},
		"keep a credential": func(ctx context.Context, s *script) string {
			credentials := s.client.Beta.Vaults.Credentials
			bearer := &anthropic.BetaManagedAgentsStaticBearerCreateParams{
				Type: "static_bearer", MCPServerURL: "https://mcp.example/mcp", Token: "nobody-reads-this-token",
			}
			p := anthropic.BetaVaultCredentialNewParams{Auth: anthropic.BetaVaultCredentialNewParamsAuthUnion{OfStaticBearer: bearer}}
			s.credential = must(credentials.New(ctx, s.vault.ID, p))
			changed := must(credentials.Update(ctx, s.credential.ID, anthropic.BetaVaultCredentialUpdateParams{
				VaultID: s.vault.ID, DisplayName: param.NewOpt("work"),
				Auth: anthropic.BetaVaultCredentialUpdateParamsAuthUnion{OfStaticBearer: &anthropic.BetaManagedAgentsStaticBearerUpdateParams{
					Type: "static_bearer", Token: param.NewOpt("nobody-reads-that-token"),
				}},
			}))
			got := must(credentials.Get(ctx, s.credential.ID, anthropic.BetaVaultCredentialGetParams{VaultID: s.vault.ID}))
			list := must(credentials.List(ctx, s.vault.ID, anthropic.BetaVaultCredentialListParams{}))
			return outcome("credential", got.ID, "name", got.DisplayName, "server", got.Auth.AsStaticBearer().MCPServerURL, "credentials", len(list.Data),
				"a token", strings.Contains(changed.RawJSON()+got.RawJSON(), "nobody-reads"), "another", refusal(credentials.New(ctx, s.vault.ID, p)))
		},
		"keep other credentials": func(ctx context.Context, s *script) string {
			create := func(auth anthropic.BetaVaultCredentialNewParamsAuthUnion) *anthropic.BetaManagedAgentsCredential {
				return must(s.client.Beta.Vaults.Credentials.New(ctx, s.vault.ID, anthropic.BetaVaultCredentialNewParams{Auth: auth}))
			}
			variable := create(anthropic.BetaVaultCredentialNewParamsAuthUnion{
				OfEnvironmentVariable: &anthropic.BetaManagedAgentsEnvironmentVariableCreateParams{
					Type: "environment_variable", SecretName: "SHOP_TOKEN", SecretValue: "nobody-reads-this-value",
					Networking: anthropic.BetaManagedAgentsCredentialNetworkingParamsUnion{
						OfLimited: &anthropic.BetaManagedAgentsLimitedCredentialNetworkingParams{Type: "limited", AllowedHosts: []string{"shop.example"}},
					},
				},
			})
			refreshed := create(anthropic.BetaVaultCredentialNewParamsAuthUnion{OfMCPOAuth: &anthropic.BetaManagedAgentsMCPOAuthCreateParams{
				Type: "mcp_oauth", MCPServerURL: "https://other.example", AccessToken: "nobody-reads-this-either",
				Refresh: anthropic.BetaManagedAgentsMCPOAuthRefreshParams{
					ClientID: "a", RefreshToken: "nobody-reads-it", TokenEndpoint: "https://c.example/token",
					TokenEndpointAuth: anthropic.BetaManagedAgentsMCPOAuthRefreshParamsTokenEndpointAuthUnion{
						OfNone: &anthropic.BetaManagedAgentsTokenEndpointAuthNoneParam{Type: "none"},
					},
				},
			}})
			return outcome("variable", variable.Auth.SecretName, "hosts", variable.Auth.Networking.AllowedHosts,
				"refreshed at", refreshed.Auth.Refresh.TokenEndpoint,
				"a secret", strings.Contains(variable.RawJSON()+refreshed.RawJSON(), "nobody-reads"))
		},
		"begin a session with a vault": func(ctx context.Context, s *script) string {
			p := must(s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{Agent: of(s.agent), EnvironmentID: s.env, VaultIDs: []string{s.vault.ID}}))
			return outcome("vaults", p.VaultIDs)
		},
		"refuse to validate a credential": func(ctx context.Context, s *script) string {
			refused := refusal(s.client.Beta.Vaults.Credentials.MCPOAuthValidate(ctx, s.credential.ID,
				anthropic.BetaVaultCredentialMCPOAuthValidateParams{VaultID: s.vault.ID}))
			return strings.NewReplacer(s.vault.ID, "VAULT", s.credential.ID, "CREDENTIAL").Replace(refused)
		},
		"delete credentials and vaults": func(ctx context.Context, s *script) string {
			vaults := s.client.Beta.Vaults
			archived := must(vaults.Credentials.Archive(ctx, s.credential.ID, anthropic.BetaVaultCredentialArchiveParams{VaultID: s.vault.ID}))
			gone := must(vaults.Credentials.Delete(ctx, s.credential.ID, anthropic.BetaVaultCredentialDeleteParams{VaultID: s.vault.ID}))
			closed := must(vaults.Archive(ctx, s.vault.ID, anthropic.BetaVaultArchiveParams{}))
			deleted := must(vaults.Delete(ctx, s.vault.ID, anthropic.BetaVaultDeleteParams{}))
			return outcome("archived", !archived.ArchivedAt.IsZero(), "credential", gone.ID, "closed", !closed.ArchivedAt.IsZero(), "vault", deleted.ID)
		},
	}
}

// skillSteps are those of skills.
func skillSteps() map[string]step {
	folder := func(word string) []io.Reader {
		text := "---\nname: greeting\ndescription: How to greet.\n---\nSay " + word + ".\n"
		return []io.Reader{
			anthropic.File(strings.NewReader(text), "greeting/SKILL.md", "text/markdown"),
			anthropic.File(strings.NewReader("more"), "greeting/more.md", "text/markdown"),
		}
	}
	made := func(skill anthropic.BetaManagedAgentsSkillParamsUnion) anthropic.BetaAgentNewParams {
		return anthropic.BetaAgentNewParams{Name: "skilled", Model: model("script"), Skills: []anthropic.BetaManagedAgentsSkillParamsUnion{skill}}
	}
	return map[string]step{
		"upload a skill": func(ctx context.Context, s *script) string {
			skills := s.client.Beta.Skills
			s.skill = must(skills.New(ctx, anthropic.BetaSkillNewParams{Files: folder("heron"), DisplayName: param.NewOpt("Greeting")}))
			s.version = must(skills.Versions.New(ctx, s.skill.ID, anthropic.BetaSkillVersionNewParams{Files: folder("crane")}))
			got := must(skills.Get(ctx, s.skill.ID, anthropic.BetaSkillGetParams{}))
			list := must(skills.List(ctx, anthropic.BetaSkillListParams{Source: param.NewOpt("custom")}))
			versions := must(skills.Versions.List(ctx, s.skill.ID, anthropic.BetaSkillVersionListParams{}))
			one := must(skills.Versions.Get(ctx, s.version.ID, anthropic.BetaSkillVersionGetParams{SkillID: s.skill.ID}))
			return outcome("skill", got.ID, "version", s.version.ID, "latest", got.LatestVersionID, "skills", len(list.Data), "versions", len(versions.Data),
				"description", one.Description)
		},
		"download a skill": func(ctx context.Context, s *script) string {
			res := must(s.client.Beta.Skills.Versions.Download(ctx, s.version.ID, anthropic.BetaSkillVersionDownloadParams{SkillID: s.skill.ID}))
			defer res.Body.Close()
			data := must(io.ReadAll(res.Body))
			var names []string
			for _, f := range must(zip.NewReader(bytes.NewReader(data), int64(len(data)))).File {
				names = append(names, f.Name)
			}
			slices.Sort(names)
			return outcome("files", names)
		},
		"begin a session with a skill": func(ctx context.Context, s *script) string {
			agent := must(s.client.Beta.Agents.New(ctx, made(anthropic.BetaManagedAgentsSkillParamsUnion{
				OfCustom: &anthropic.BetaManagedAgentsCustomSkillParams{Type: "custom", SkillID: s.skill.ID},
			})))
			p := must(s.client.Beta.Sessions.New(ctx, anthropic.BetaSessionNewParams{Agent: of(agent.ID), EnvironmentID: s.env}))
			ran := must(s.ran(ctx, p.ID, `call: skill {"name":"greeting"}`))
			return outcome("version", p.Agent.Skills[0].Version, "read", strings.Contains(ran, "Say crane."))
		},
		"refuse a skill of the vendor": func(ctx context.Context, s *script) string {
			return refusal(s.client.Beta.Agents.New(ctx, made(anthropic.BetaManagedAgentsSkillParamsUnion{
				OfAnthropic: &anthropic.BetaManagedAgentsAnthropicSkillParams{Type: "anthropic", SkillID: "xlsx"},
			})))
		},
		"delete a skill": func(ctx context.Context, s *script) string {
			gone := must(s.client.Beta.Skills.Versions.Delete(ctx, s.version.ID, anthropic.BetaSkillVersionDeleteParams{SkillID: s.skill.ID}))
			deleted := must(s.client.Beta.Skills.Delete(ctx, s.skill.ID, anthropic.BetaSkillDeleteParams{}))
			return outcome("version", gone.ID, "skill", deleted.ID)
		},
	}
}

// hooks is a webhook, and where its events come.
type hooks struct {
	*httptest.Server
	*anthropic.BetaNewOrganizationWebhookEndpoint
	come chan func(key string) (*anthropic.UnwrapWebhookEvent, error)
	key  string
	told string // the session that it is told of
}

// next unwraps the next event, which names its type and its object.
func (h *hooks) next(ctx context.Context) string {
	select {
	case unwrap := <-h.come:
		e := must(unwrap(h.key))
		return fmt.Sprintf("%s %s %v", e.Data.Type, e.Data.ID, !e.CreatedAt.IsZero())
	case <-ctx.Done():
		panic(failure{ctx.Err()})
	}
}

// webhookSteps are those of webhooks.
func webhookSteps() map[string]step {
	create := func(url string, events ...string) anthropic.BetaOrganizationWebhookNewParams {
		return anthropic.BetaOrganizationWebhookNewParams{URL: url, Name: param.NewOpt("ci"), EnabledEvents: events}
	}
	return map[string]step{
		"create a webhook": func(ctx context.Context, s *script) string {
			h := &hooks{come: make(chan func(string) (*anthropic.UnwrapWebhookEvent, error), 100)}
			h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err == nil {
					h.come <- func(key string) (*anthropic.UnwrapWebhookEvent, error) {
						return s.client.Beta.Webhooks.Unwrap(body, r.Header, option.WithWebhookKey(key))
					}
				}
			}))
			s.t.Cleanup(h.Close)
			h.BetaNewOrganizationWebhookEndpoint = must(s.client.Beta.Organization.Webhooks.New(ctx,
				create(h.Server.URL, "agent.created", "session.created", "session.archived")))
			h.key, s.hooks = h.SigningSecret, h
			return outcome("state", h.State, "name", h.Name, "secret", h.key != "")
		},
		"refuse a webhook for an unknown event": func(ctx context.Context, s *script) string {
			return refusal(s.client.Beta.Organization.Webhooks.New(ctx, create(s.hooks.Server.URL, "user_profile.enforcement_action_opened")))
		},
		"unwrap what a webhook is told": func(ctx context.Context, s *script) string {
			a := must(s.client.Beta.Agents.New(ctx, anthropic.BetaAgentNewParams{Name: "told of", Model: model("script")}))
			p := must(s.session(ctx))
			s.hooks.told = p.ID
			return outcome("agent", a.ID, "session", p.ID, "first", s.hooks.next(ctx), "second", s.hooks.next(ctx))
		},
		"change the secret of a webhook": func(ctx context.Context, s *script) string {
			old := s.hooks.key
			s.hooks.key = must(s.client.Beta.Organization.Webhooks.RegenerateSigningSecret(ctx, s.hooks.ID,
				anthropic.BetaOrganizationWebhookRegenerateSigningSecretParams{})).SigningSecret
			must(s.client.Beta.Sessions.Archive(ctx, s.hooks.told, anthropic.BetaSessionArchiveParams{}))
			return outcome("another", s.hooks.key != old, "told", s.hooks.next(ctx))
		},
		"update, list and delete webhooks": func(ctx context.Context, s *script) string {
			webhooks := s.client.Beta.Organization.Webhooks
			must(webhooks.Update(ctx, s.hooks.ID, anthropic.BetaOrganizationWebhookUpdateParams{
				State: anthropic.BetaOrganizationWebhookUpdateParamsStateDisabled,
			}))
			updated := must(webhooks.Get(ctx, s.hooks.ID, anthropic.BetaOrganizationWebhookGetParams{}))
			var events []int
			for pages := webhooks.ListAutoPaging(ctx, anthropic.BetaOrganizationWebhookListParams{Limit: param.NewOpt[int64](1)}); ; {
				if !pages.Next() {
					must(0, pages.Err())
					break
				}
				events = append(events, len(pages.Current().EnabledEvents))
			}
			must(webhooks.Delete(ctx, s.hooks.ID, anthropic.BetaOrganizationWebhookDeleteParams{}))
			return outcome("state", updated.State, "webhooks", len(events), "events", events[0],
				"read", strings.ReplaceAll(refusal(webhooks.Get(ctx, s.hooks.ID, anthropic.BetaOrganizationWebhookGetParams{})), s.hooks.ID, "ID"))
		},
	}
}

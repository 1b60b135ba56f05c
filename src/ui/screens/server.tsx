/** The server: its version and limits, its API keys, and a switch that pauses all agents. */
import { useRef, useState } from 'preact/hooks'
import { AgentServerError } from '../../client/client.ts'
import type { Scope } from '../../contract/key.ts'
import type { Info } from '../../contract/server.ts'
import { Action } from '../parts/action.tsx'
import { Copy } from '../parts/copy.tsx'
import { textIn } from '../parts/fields.ts'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { attempt, notify } from '../parts/notices.tsx'
import { texts } from '../state/preferences.ts'
import { addressOf } from '../state/route.ts'
import { client, may, seesAll } from '../state/session.ts'
import { count, moment } from '../parts/amounts.ts'
import { browserName } from '../text/browser-name.ts'
import { short, visible } from '../text/visible.ts'
import { ActivityNow, Fact } from './activity.tsx'

const SCOPES = ['read', 'write', 'approve', 'files', 'commands', 'secrets', 'admin'] satisfies Scope[]

export function Server() {
  const { server, costs, webhooks, pauseAll } = texts.value
  const info = useLoaded((signal) => client().info({ signal }), [])
  return (
    <section class="page">
      <h1>{server}</h1>
      {/* The links for screens without room for them in the navigation. */}
      <p class="bar narrow-only">
        <a href={addressOf('costs')}>{costs}</a>
        <a href={addressOf('webhooks')}>{webhooks}</a>
      </p>
      <WhenLoaded of={info} draw={(value) => <About info={value} />} />
      {may('write') && (
        <p>
          <Action act={pauseEverything}>{pauseAll}</Action>
        </p>
      )}
      {may('admin') && <Keys />}
      <Logins />
    </section>
  )
}

function About({ info }: { readonly info: Info }) {
  const { version, isolation, limits, network } = texts.value
  const facts = [
    [version, info.version],
    [isolation, info.isolation],
    [network, info.network.default.mode],
  ] as const
  return (
    <>
      <dl class="sums">
        {facts.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
      {seesAll() && <ActivityNow runLimit={info.limits.max_concurrent_runs} />}
      <details>
        <summary>{limits}</summary>
        <dl>
          {Object.entries(info.limits).map(([name, value]) => (
            <div key={name} class="pair narrow">
              <dt>
                <code>{name}</code>
              </dt>
              <dd class="number">{count(value)}</dd>
            </div>
          ))}
        </dl>
      </details>
    </>
  )
}

/** Reads all names first: each agent that is paused lets one begin that waits for a place, which changes the list. */
async function pauseEverything(): Promise<void> {
  const ids: string[] = []
  for await (const { id } of client().conversations.summaries({ status: ['running'], limit: 200 })) ids.push(id)
  let pausedCount = 0
  for (const id of ids) pausedCount += (await pauseIfThere(id)) ? 1 : 0
  notify(texts.value.pausedAll(pausedCount))
}

/** An agent that has ended meanwhile does not keep the others from being paused. */
async function pauseIfThere(id: string): Promise<boolean> {
  try {
    await client().conversation(id).pause()
    return true
  } catch (error) {
    if (error instanceof AgentServerError && [404, 409, 410].includes(error.status ?? 0)) return false
    throw error
  }
}

function Keys() {
  const { apiKeys, lastUsed, revoke, revokeSure, shownOnce, copy } = texts.value
  const [version, setVersion] = useState(0)
  const [createdKey, setMade] = useState<string>()
  const keys = useLoaded(
    (signal) =>
      client()
        .keys.list({ signal })
        .then(({ items }) => items),
    [version],
  )
  const remove = async (id: string, name: string) => {
    if (!confirm(revokeSure(visible(name)))) return
    await client().keys.delete(id)
    setVersion((before) => before + 1)
  }
  const onAdded = (key: string) => {
    setMade(key)
    setVersion((before) => before + 1)
  }
  return (
    <>
      <h2>{apiKeys}</h2>
      <WhenLoaded
        of={keys}
        draw={(items) => (
          <ul class="plain">
            {items.map(({ id, name, prefix, scopes, last_used_at }) => (
              <li key={id} class="pair">
                <span>
                  <strong>{visible(name)}</strong> <code>{visible(prefix)}…</code>{' '}
                  <span class="quiet">{scopes.join(', ')}</span>
                </span>
                <span class="quiet">
                  {lastUsed(last_used_at && moment(last_used_at))}{' '}
                  <Action class="link" act={() => remove(id, name)}>
                    {revoke}
                  </Action>
                </span>
              </li>
            ))}
          </ul>
        )}
      />
      {createdKey && (
        <p role="status" class="actions shown-once">
          {shownOnce} <code class="secret">{createdKey}</code> <Copy textOf={() => createdKey}>{copy}</Copy>
        </p>
      )}
      <MakeKey added={onAdded} />
    </>
  )
}

function MakeKey({ added }: { readonly added: (key: string) => void }) {
  const { makeKey, keyName, scopes } = texts.value
  const isBusy = useRef(false)
  const make = async (form: HTMLFormElement) => {
    // The form may be sent twice: of two keys, only one would be shown.
    if (isBusy.current) return
    isBusy.current = true
    try {
      const data = new FormData(form)
      const chosenScopes = SCOPES.filter((scope) => data.get(scope) !== null)
      added((await client().keys.create({ name: textIn(data, 'name'), scopes: chosenScopes })).key)
      form.reset()
    } finally {
      isBusy.current = false
    }
  }
  return (
    <form class="narrow" onSubmit={(event) => (event.preventDefault(), attempt(() => make(event.currentTarget)))}>
      <label class="field">
        {keyName}
        <input name="name" required maxLength={100} />
      </label>
      <fieldset class="choices">
        <legend>{scopes}</legend>
        {SCOPES.map((scope) => (
          <label class="option" key={scope}>
            <input type="checkbox" name={scope} defaultChecked={scope === 'read'} /> {scope}
          </label>
        ))}
      </fieldset>
      <button type="submit">{makeKey}</button>
    </form>
  )
}

function Logins() {
  const { logins, lastUsed, current, end, ofMasterKey } = texts.value
  const [version, setVersion] = useState(0)
  const list = useLoaded(
    (signal) =>
      client()
        .logins.list({ signal })
        .then(({ items }) => items),
    [version],
  )
  const remove = async (id: string) => {
    await client().logins.delete(id)
    setVersion((before) => before + 1)
  }
  return (
    <>
      <h2>{logins}</h2>
      <WhenLoaded
        of={list}
        draw={(items) => (
          <ul class="plain">
            {items.map(({ id, name, scopes, user_agent, last_used_at, is_current }) => (
              <li key={id} class="pair">
                <span>
                  <strong>{visible(name ?? ofMasterKey)}</strong> {is_current && <span class="badge">{current}</span>}{' '}
                  <span class="quiet">
                    {scopes.join(', ')} · {short(browserName(user_agent ?? ''), 60)}
                  </span>
                </span>
                <span class="quiet">
                  {lastUsed(last_used_at && moment(last_used_at))}{' '}
                  {!is_current && (
                    <Action class="link" act={() => remove(id)}>
                      {end}
                    </Action>
                  )}
                </span>
              </li>
            ))}
          </ul>
        )}
      />
    </>
  )
}

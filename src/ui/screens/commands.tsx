/** Commands of people in the workdir of a conversation, and the processes that run there. */
import { useEffect, useState } from 'preact/hooks'
import { Action } from '../parts/action.tsx'
import { attempt } from '../parts/notices.tsx'
import { useLastChange } from '../parts/last-change.ts'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { Output } from '../parts/output.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import { commandDraftOf } from '../state/message-draft.ts'
import { texts } from '../state/preferences.ts'
import { duration, moment } from '../parts/amounts.ts'
import { short, visible } from '../text/visible.ts'

export function Commands({ open }: { readonly open: OpenConversation }) {
  const { runCommand, command: label } = texts.value
  const draft = commandDraftOf(open.id)
  const command = draft.text.value
  const [outcome, setOutcome] = useState<string>()
  const [version, setVersion] = useState(0)
  useEffect(() => draft.follow(), [draft])
  const run = async () => {
    setOutcome(undefined)
    try {
      const { stdout, stderr, exit_code, status } = await draft.send((text, options) =>
        open.handle.commands.run({ command: text, session_id: 'api' }, options),
      )
      const end = exit_code === null || exit_code === undefined ? status : `exit ${exit_code}`
      setOutcome(`${stdout}${stderr}\n[${end}]`)
    } finally {
      setVersion((before) => before + 1)
    }
  }
  return (
    <div class="page">
      <form class="bar" onSubmit={(event) => (event.preventDefault(), attempt(run))}>
        <input
          class="name"
          aria-label={label}
          placeholder={label}
          value={command}
          onInput={({ currentTarget }) => draft.write(currentTarget.value)}
        />
        <button type="submit" class="primary" disabled={draft.isSending.value || !/\S/.test(command)}>
          {runCommand}
        </button>
      </form>
      {outcome !== undefined && <Output text={outcome} />}
      <Running open={open} version={version} changed={() => setVersion((before) => before + 1)} />
      <Earlier open={open} version={version} />
    </div>
  )
}

type RunningProps = { readonly open: OpenConversation; readonly version: number; readonly changed: () => void }

function Running({ open, version, changed }: RunningProps) {
  const { processes, noProcesses, end } = texts.value
  const list = useLoaded(
    (signal) => open.handle.processes.list({ signal }).then(({ items }) => items),
    [open.id, version],
    useLastChange(open),
  )
  const stop = async (pid: number) => {
    await open.handle.processes.end(pid)
    changed()
  }
  return (
    <>
      <h2>{processes}</h2>
      <WhenLoaded
        of={list}
        draw={(items) =>
          items.length === 0 ? (
            <p class="quiet">{noProcesses}</p>
          ) : (
            <ul class="plain">
              {items.map(({ pid, command_line, state, started_at }) => (
                <li key={pid} class="pair">
                  <code class="name">{short(command_line)}</code>
                  <span class="quiet">
                    {pid}, {state}, {moment(started_at)}{' '}
                    <Action class="link" act={() => stop(pid)}>
                      {end}
                    </Action>
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      />
    </>
  )
}

function Earlier({ open, version }: { readonly open: OpenConversation; readonly version: number }) {
  const list = useLoaded(
    (signal) => open.handle.commands.list({ limit: 50 }, { signal }).then(({ items }) => items),
    [open.id, version],
    useLastChange(open),
  )
  return (
    <WhenLoaded
      of={list}
      draw={(items) =>
        items.length > 0 && (
          <>
            <h2>{texts.value.commands}</h2>
            <ul class="plain">
              {items.map(({ id, command, status, exit_code, execution_time, created_at }) => (
                <li key={id} class="pair">
                  <code class="name" title={visible(command)}>
                    {short(command)}
                  </code>
                  <span class="facts quiet number">
                    <span class={exit_code === 0 ? undefined : 'fault'}>
                      {exit_code === null || exit_code === undefined ? status : `exit ${exit_code}`}
                    </span>
                    <span>{execution_time !== undefined && duration(1000 * execution_time)}</span>
                    <span>{moment(created_at)}</span>
                  </span>
                </li>
              ))}
            </ul>
          </>
        )
      }
    />
  )
}

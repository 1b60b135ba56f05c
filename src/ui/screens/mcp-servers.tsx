/** The MCP servers of a conversation: whether each is connected, why it is not, and what it offers. */
import { useEffect, useState } from 'preact/hooks'
import type { McpServerView, McpStatus } from '../../contract/mcp/mcp-status.ts'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { attempt } from '../parts/notices.tsx'
import type { OpenConversation } from '../state/conversation.ts'
import { texts } from '../state/preferences.ts'
import { may } from '../state/session.ts'
import { OutsideLink } from '../text/markdown.tsx'
import { visible } from '../text/visible.ts'

/** The shape and the colour of each: those of a status of a conversation. */
const LOOKS: Readonly<Record<McpStatus, readonly [shape: string, colour: string]>> = {
  pending: ['○', 'idle'],
  connecting: ['◐', 'running'],
  connected: ['✓', 'finished'],
  failed: ['✕', 'error'],
  needs_auth: ['◆', 'waiting_for_input'],
}

/** A server that fails as before, or is connected as before, does so without an event: it is read again after so long. */
const CONNECTING_MS = 1000

export function McpServers({ open }: { readonly open: OpenConversation }) {
  const servers = useLoaded(
    (signal) => open.handle.mcp.list({ signal }).then(({ items }) => items),
    [open.id],
    open.mcpVersion.value,
  )
  useEffect(() => {
    if (!servers.value?.some(({ status }) => status === 'connecting')) return undefined
    const timer = setTimeout(servers.again, CONNECTING_MS)
    return () => clearTimeout(timer)
  }, [servers.value, servers.fault])
  return (
    <WhenLoaded
      of={servers}
      draw={(items) =>
        items.length > 0 && (
          <>
            <h2>{texts.value.mcpServers}</h2>
            <ul class="plain">
              {items.map((server) => (
                <li key={server.name} class="entry">
                  <Server
                    server={server}
                    connect={() => open.handle.mcp.reconnect(server.name)}
                    again={servers.again}
                  />
                </li>
              ))}
            </ul>
          </>
        )
      }
    />
  )
}

type Props = {
  readonly server: McpServerView
  readonly connect: () => Promise<unknown>
  /** Reads the servers again. */
  readonly again: () => void
}

function Server({ server, connect, again }: Props) {
  const { name, transport, status, error, authorization_url, tools, left_out = [] } = server
  const { mcpStatus, reconnect, authorize } = texts.value
  const [isBusy, setBusy] = useState(false)
  const [shape, colour] = LOOKS[isBusy ? 'connecting' : status]
  const start = async () => {
    setBusy(true)
    try {
      await connect()
    } finally {
      setBusy(false)
      again()
    }
  }
  return (
    <>
      <div class="actions">
        <strong>{visible(name)}</strong>
        <span class={`status status-${colour}`} role="status">
          <span class="shape" aria-hidden="true">
            {shape}
          </span>
          <span class="word">{mcpStatus[isBusy ? 'connecting' : status]}</span>
        </span>
        <span class="quiet">{[transport, server.server && visible(server.server)].filter(Boolean).join(' · ')}</span>
        {may('write') && (
          <button type="button" class="link last" disabled={isBusy} onClick={() => attempt(start)}>
            {reconnect}
          </button>
        )}
      </div>
      {error !== undefined && <p class="fault">{visible(error)}</p>}
      {authorization_url !== undefined && (
        <p>
          <OutsideLink href={authorization_url}>{authorize}</OutsideLink>
        </p>
      )}
      <Names text={texts.value.mcpTools(tools.length)} names={tools} />
      <Names text={texts.value.mcpLeftOut(left_out.length)} names={left_out} />
    </>
  )
}

function Names({ text, names }: { readonly text: string; readonly names: readonly string[] }) {
  if (names.length === 0) return null
  return (
    <details>
      <summary>{text}</summary>
      <ul class="plain names">
        {names.map((name) => (
          <li key={name}>
            <code>{visible(name)}</code>
          </li>
        ))}
      </ul>
    </details>
  )
}

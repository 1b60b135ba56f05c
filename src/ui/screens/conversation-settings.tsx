/** What can be changed of a conversation, and the state of its MCP servers. */
import { useState } from 'preact/hooks'
import type { BodyOf } from '../../client/client.ts'
import { textIn } from '../parts/fields.ts'
import { ModeField, modeIn } from '../parts/mode-field.tsx'
import { attempt, notify } from '../parts/notices.tsx'
import { saveBlob } from '../parts/save.ts'
import type { OpenConversation } from '../state/conversation.ts'
import { count } from '../parts/amounts.ts'
import { mute, mutedConversations } from '../state/muted.ts'
import { texts } from '../state/preferences.ts'
import { may, ownProfiles } from '../state/session.ts'
import { visible } from '../text/visible.ts'
import { McpServers } from './mcp-servers.tsx'

export function ConversationSettings({ open }: { readonly open: OpenConversation }) {
  const { title, model, labels, budget, save, saved, archive, restore, workdir, muteConversation, actions } =
    texts.value
  const [isBusy, setBusy] = useState(false)
  const view = open.view.value
  if (!view) return <p class="quiet page">{texts.value.loading}</p>
  const change = async (body: BodyOf<'updateConfig'>) => {
    setBusy(true)
    try {
      await open.handle.updateConfig(body)
      await open.refresh()
      notify(saved)
    } finally {
      setBusy(false)
    }
  }
  const submit = (form: HTMLFormElement) => attempt(() => change(changesIn(new FormData(form), view)))
  const isLocked = !may('write')
  const isOfProfile = ownProfiles() !== undefined
  return (
    <div class="page">
      <form class="narrow" onSubmit={(event) => (event.preventDefault(), submit(event.currentTarget))}>
        <fieldset class="plain" disabled={isLocked || isBusy}>
          <label class="field">
            {title}
            <input name="title" defaultValue={view.title ?? ''} />
          </label>
          <label class="field">
            {model}
            <input name="model" defaultValue={view.llm_config.model ?? ''} disabled={isOfProfile} />
          </label>
          <ModeField chosen={view.state.permission_mode} isLocked={isOfProfile || !may('approve')} />
          <label class="field">
            {labels}
            <input name="labels" defaultValue={view.labels?.join(', ') ?? ''} />
          </label>
          <label class="field">
            {budget}
            <input
              name="max_budget_usd"
              type="number"
              min="0"
              step="0.01"
              defaultValue={view.max_budget_usd ?? ''}
              disabled={isOfProfile}
            />
          </label>
          <p class="quiet">
            {workdir}: <code>{visible(view.workdir)}</code>
          </p>
          <div class="actions">
            <button type="submit" class="primary">
              {save}
            </button>
          </div>
        </fieldset>
      </form>
      <h2>{actions}</h2>
      <label class="option">
        <input
          type="checkbox"
          checked={mutedConversations.value.has(open.id)}
          onChange={({ currentTarget }) => mute(open.id, currentTarget.checked)}
        />{' '}
        {muteConversation}
      </label>
      <div class="bar">
        <ExportButton open={open} title={view.title ?? view.id} />
        <button
          type="button"
          disabled={isLocked || isBusy}
          onClick={() => attempt(() => change({ archived: !view.archived }))}
        >
          {view.archived ? restore : archive}
        </button>
      </div>
      <McpServers open={open} />
    </div>
  )
}

function ExportButton({ open, title }: { readonly open: OpenConversation; readonly title: string }) {
  const { exportMarkdown, exporting } = texts.value
  const [progress, setProgress] = useState<number>()
  const save = async () => {
    setProgress(0)
    try {
      const onEvent = (seq: number) => seq % PROGRESS_EVENTS === 0 && setProgress(seq)
      // The first screen is smaller without it.
      const { exportOf } = await import('../state/export.ts')
      saveBlob(await exportOf(open.handle, title, { onEvent }), `${open.id}.md`)
    } finally {
      setProgress(undefined)
    }
  }
  return (
    <button type="button" disabled={progress !== undefined} onClick={() => attempt(save)}>
      {progress === undefined ? exportMarkdown : exporting(count(progress))}
    </button>
  )
}

/** A long conversation shows how far its export is, each time after so many events. */
const PROGRESS_EVENTS = 100

type View = NonNullable<OpenConversation['view']['value']>

/** Returns what the form has changed: others may change the rest meanwhile. */
function changesIn(form: FormData, view: View): BodyOf<'updateConfig'> {
  const text = (name: string) => textIn(form, name)
  const mode = modeIn(form)
  const labels = text('labels')
    .split(',')
    .map((label) => label.trim())
    .filter(Boolean)
  const budget = text('max_budget_usd') === '' ? undefined : Number(text('max_budget_usd'))
  return {
    ...(text('title') !== (view.title ?? '') && text('title') !== '' && { title: text('title') }),
    ...(text('model') !== (view.llm_config.model ?? '') &&
      text('model') !== '' && { llm_config: { model: text('model') } }),
    ...(mode !== undefined && mode !== view.state.permission_mode && { permission_mode: mode }),
    ...(labels.join() !== (view.labels ?? []).join() && { labels }),
    ...(budget !== undefined && budget !== view.max_budget_usd && { max_budget_usd: budget }),
  }
}

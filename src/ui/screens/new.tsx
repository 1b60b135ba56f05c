/** A new conversation: what to do, and with what. It remembers the last choices. */
import { useEffect, useState } from 'preact/hooks'
import type { BodyOf, CallOptions } from '../../client/client.ts'
import { submitOnEnter, textIn } from '../parts/fields.ts'
import { ModeField, modeIn } from '../parts/mode-field.tsx'
import { WhenLoaded, useLoaded } from '../parts/loaded.tsx'
import { newMessageDraft } from '../state/message-draft.ts'
import { texts } from '../state/preferences.ts'
import { remember, rememberedValue } from '../state/remembered.ts'
import { showFromHere } from '../state/route.ts'
import { client, messageOf, ownProfiles, seesAll } from '../state/session.ts'
import { visible } from '../text/visible.ts'

const FIELDS = ['model', 'workdir', 'permission_mode', 'profile'] as const

export function New() {
  const { newConversation, firstMessage, start, startHint } = texts.value
  const profiles = ownProfiles()
  const draft = newMessageDraft()
  const [fault, setFault] = useState<string>()
  useEffect(() => draft.follow(), [draft])
  const create = async (form: HTMLFormElement) => {
    setFault(undefined)
    const show = showFromHere()
    const choices = choicesIn(new FormData(form))
    const post = (text: string, options: CallOptions) =>
      client().conversations.create({ ...choices, initial_message: text.trim(), run: true }, options)
    try {
      const { id } = await draft.send(post, JSON.stringify(choices))
      show('c', id)
    } catch (error) {
      setFault(messageOf(error))
    }
  }
  return (
    <section class="page">
      <h1>{newConversation}</h1>
      <form class="narrow" onSubmit={(event) => (event.preventDefault(), void create(event.currentTarget))}>
        <label class="field">
          {firstMessage}
          <textarea
            name="message"
            rows={6}
            required
            autoFocus
            value={draft.text.value}
            onInput={({ currentTarget }) => draft.write(currentTarget.value)}
            onKeyDown={submitOnEnter}
          />
        </label>
        {profiles ? <ProfileField profiles={profiles} /> : <Choices />}
        {fault && (
          <p class="fault" role="alert">
            {fault}
          </p>
        )}
        <div class="actions">
          <button type="submit" class="primary" disabled={draft.isSending.value}>
            {start}
          </button>
          <span class="quiet">{startHint}</span>
        </div>
      </form>
    </section>
  )
}

function Choices() {
  const { model, workdir, serverDefault } = texts.value
  const models = useLoaded(async (signal) => (await client().models({ limit: 200 }, { signal })).items, [])
  return (
    <>
      <label class="field">
        {model}
        <input
          name="model"
          list="models"
          placeholder={serverDefault}
          defaultValue={rememberedValue('new model') ?? ''}
        />
      </label>
      <WhenLoaded
        of={models}
        draw={(items) => (
          <datalist id="models">
            {items.map(({ model: id }) => (
              <option key={id} value={id} />
            ))}
          </datalist>
        )}
      />
      {/* A limited key cannot choose a directory: another conversation may have it. */}
      {seesAll() && (
        <label class="field">
          {workdir}
          <input name="workdir" placeholder={serverDefault} defaultValue={rememberedValue('new workdir') ?? ''} />
        </label>
      )}
      <ModeField chosen={rememberedValue('new permission_mode') ?? 'default'} />
      <label class="option">
        <input type="checkbox" name="file_checkpointing" defaultChecked /> {texts.value.keepSnapshots}
      </label>
    </>
  )
}

/** The profile says the rest. */
function ProfileField({ profiles }: { readonly profiles: readonly string[] }) {
  // Another key may have had others.
  const lastProfile = profiles.find((name) => name === rememberedValue('new profile'))
  return (
    <label class="field">
      {texts.value.profile}
      <select name="profile" defaultValue={lastProfile ?? profiles[0] ?? ''}>
        {profiles.map((name) => (
          <option key={name} value={name}>
            {visible(name)}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Returns all but the message. */
function choicesIn(form: FormData): BodyOf<'createConversation'> {
  const text = (name: string) => textIn(form, name)
  for (const name of FIELDS) if (form.has(name)) remember(`new ${name}`, text(name))
  if (form.has('profile')) return { profile: text('profile') }
  return {
    permission_mode: modeIn(form) ?? 'default',
    file_checkpointing: form.get('file_checkpointing') !== null,
    ...(text('model') && { llm_config: { model: text('model') } }),
    ...(text('workdir') && { workdir: text('workdir') }),
  }
}

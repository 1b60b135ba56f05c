/** What an agent asks a person, whole, and the buttons that answer it. */
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { BodyOf } from '../../client/client.ts'
import type { OpenRequest, OpenRequestOf } from '../../contract/request.ts'
import type { KindOfForm } from '../../contract/requests/request-forms.ts'
import { decide, decisionOf, hasForm, titleOfRequest } from '../../contract/requests/request-forms.ts'
import type { AskedQuestion } from '../../contract/values/question.ts'
import { begunAnswer, keepAnswer } from '../state/begun-answers.ts'
import { refreshRequests } from '../state/live.ts'
import { singleKeys, texts } from '../state/preferences.ts'
import { client, may, messageOf, ownProfiles } from '../state/session.ts'
import { age, moment } from './amounts.ts'
import { pauseDecisions, useArmed } from './armed.ts'
import { Calls, isLong } from './asked-calls.tsx'
import { useFirstAnswer } from './first-answer.ts'
import { now } from './now.ts'
import { visible } from '../text/visible.ts'

type Answer = BodyOf<'answerRequest'>
type Props = { readonly conversationId: string; readonly request: OpenRequest; readonly children?: ComponentChildren }

export function RequestCard({ conversationId, request, children }: Props) {
  const title = texts.value.inLanguage(titleOfRequest(request))
  const [fault, setFault] = useState<string>()
  const [isSent, setSent] = useState(false)
  const card = useRef<HTMLElement>(null)
  const { isArmed, decides } = useArmed(card, shownIn(request))
  // The card grows by what it says about a fault: one that is not in sight takes no key.
  useLayoutEffect(() => {
    if (fault !== undefined) card.current?.scrollIntoView({ block: 'nearest' })
  }, [fault])
  const leave = () => {
    pauseDecisions()
    focusNext(card.current)
  }
  const answersFirst = useFirstAnswer({ conversationId, request, card, leave })
  const send = async (body: Answer) => {
    if (!decides()) return setFault(texts.value.moved)
    setSent(true)
    setFault(undefined)
    let isDone = false
    try {
      isDone = await answersFirst(() => client().conversation(conversationId).requests.answer(request.request_id, body))
      focusNext(card.current)
    } catch (error) {
      setFault(messageOf(error))
    }
    await refreshRequests().catch(messageOf)
    if (!isDone) setSent(false)
  }
  const answering = { send, canSend: isArmed && !isSent }
  return (
    <article class="card request" ref={card} tabIndex={-1} data-request={request.request_id} aria-label={title}>
      <header>
        <span class="badge wants">{title}</span>
        {children}
        {request.agent_name !== undefined && (
          <span class="quiet">{texts.value.bySubagent(visible(request.agent_name))}</span>
        )}
        <time class="quiet" dateTime={request.opened_at} title={moment(request.opened_at)}>
          {age(request.opened_at, now.value)}
        </time>
      </header>
      <OpenCard request={request} {...answering} />
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
    </article>
  )
}

type Answering = { readonly send: (body: Answer) => Promise<void>; readonly canSend: boolean }

function OpenCard({ request, ...answering }: Answering & { readonly request: OpenRequest }) {
  if (hasForm(request, 'calls')) return <Permission request={request} {...answering} />
  if (hasForm(request, 'questions')) return <Questions request={request} {...answering} />
  if (hasForm(request, 'decision')) return <Decision request={request} {...answering} />
  return <p>{texts.value.programAnswers}</p>
}

/** Others may decide some calls of a request, or change their input. */
const shownIn = ({ request_id, ...request }: OpenRequest): string =>
  request.kind === 'permission'
    ? [request_id, ...openCalls(request).map(({ input_hash }) => input_hash)].join(' ')
    : request_id

const openCalls = ({ payload }: Pick<OpenRequestOf<'permission'>, 'payload'>) =>
  payload.tool_uses.filter(({ decision }) => !decision)

/** An answer that is remembered is a rule, and a profile has its own. */
const mayRemember = (): boolean => ownProfiles() === undefined

function Permission({ request, send, canSend }: Answering & { readonly request: OpenRequestOf<'permission'> }) {
  const { allow, allowAlways, deny, fewRights } = texts.value
  const [unreadIds, setUnread] = useState<ReadonlySet<string>>(
    () => new Set(request.payload.tool_uses.filter(isLong).map(({ tool_use_id }) => tool_use_id)),
  )
  const open = openCalls(request)
  const rules = mayRemember() && open.every((call) => call.rules) && open.flatMap((call) => call.rules ?? [])
  const decide = (behavior: 'allow' | 'deny', remember = false) => {
    const decisions = open.map(({ tool_use_id, input_hash }) => ({
      tool_use_id,
      input_hash,
      behavior,
      ...(remember && { remember }),
    }))
    void send({ kind: 'permission', decisions })
  }
  const canAllow = canSend && unreadIds.size === 0
  if (!may('approve')) return <Calls request={request} unread={unreadIds} note={fewRights} />
  const markRead = (id: string) => setUnread(new Set([...unreadIds].filter((other) => other !== id)))
  return (
    <>
      <Calls request={request} unread={unreadIds} onRead={markRead} />
      <div class="actions">
        <button type="button" class="primary" data-key="a" disabled={!canAllow} onClick={() => decide('allow')}>
          {allow} <KeyHint name="a" />
        </button>
        <button type="button" data-key="d" disabled={!canSend} onClick={() => decide('deny')}>
          {deny} <KeyHint name="d" />
        </button>
        {rules && (
          <button type="button" disabled={!canAllow} onClick={() => decide('allow', true)}>
            {allowAlways}
          </button>
        )}
      </div>
      {rules && (
        <p class="quiet">
          {allowAlways}: <code>{visible(rules.join(', '))}</code>
        </p>
      )}
    </>
  )
}

const KeyHint = ({ name }: { readonly name: string }) =>
  singleKeys.value === 'on' ? <kbd aria-hidden="true">{name}</kbd> : null

type OpenDecision = OpenRequestOf<KindOfForm<'decision'>>

function Decision({ request, send, canSend }: Answering & { readonly request: OpenDecision }) {
  const { allow, allowAlways, deny, fewRights, inLanguage } = texts.value
  const { sentence, remembered } = decisionOf(request)
  const isAllowed = may('approve')
  const answer = (behavior: 'allow' | 'deny', remember = false) => void send(decide(request.kind, behavior, remember))
  return (
    <>
      <p>{visible(inLanguage(sentence))}</p>
      {isAllowed ? (
        <div class="actions">
          <button type="button" class="primary" data-key="a" disabled={!canSend} onClick={() => answer('allow')}>
            {allow} <KeyHint name="a" />
          </button>
          <button type="button" data-key="d" disabled={!canSend} onClick={() => answer('deny')}>
            {deny} <KeyHint name="d" />
          </button>
          {remembered !== undefined && mayRemember() && (
            <button type="button" disabled={!canSend} onClick={() => answer('allow', true)}>
              {allowAlways}
            </button>
          )}
        </div>
      ) : (
        <p class="quiet">{fewRights}</p>
      )}
    </>
  )
}

type OpenForm = OpenRequestOf<KindOfForm<'questions'>>

function Questions({ request, send, canSend }: Answering & { readonly request: OpenForm }) {
  const { questions } = request.payload
  const chosenLabels = begunAnswer(request.request_id)
  if (!may('write'))
    return (
      <>
        {questions.map(({ question, options }, index) => (
          <p key={index}>
            {visible(question)} <span class="quiet">{visible(options.map(({ label }) => label).join(' / '))}</span>
          </p>
        ))}
        <p class="quiet">{texts.value.fewRights}</p>
      </>
    )
  const answeredEntries = Object.entries(chosenLabels).filter(([, labels]) => labels.some((label) => /\S/.test(label)))
  const submit = (event?: Event) => {
    event?.preventDefault()
    const answers = Object.fromEntries(
      answeredEntries.map(([index, labels]) => [index, labels.length === 1 ? (labels[0] ?? '') : [...labels]]),
    )
    void send({ kind: request.kind, answers })
  }
  return (
    <form onSubmit={submit}>
      {questions.map((question, index) => (
        <Question
          key={index}
          id={`${request.request_id}-${index}`}
          question={question}
          hasKeys={index === 0}
          chosen={chosenLabels[index] ?? []}
          choose={(labels) => keepAnswer(request.request_id, { ...chosenLabels, [index]: labels })}
        />
      ))}
      <div class="actions">
        <button type="submit" class="primary" disabled={!canSend || answeredEntries.length === 0}>
          {texts.value.answer}
        </button>
      </div>
    </form>
  )
}

type QuestionProps = {
  readonly id: string
  readonly question: AskedQuestion
  readonly hasKeys: boolean
  readonly chosen: readonly string[]
  readonly choose: (labels: readonly string[]) => void
}

function Question({ id, question, hasKeys, chosen, choose }: QuestionProps) {
  const { options, multi_select } = question
  const labels = options.map(({ label }) => label)
  const other = chosen.find((label) => !labels.includes(label)) ?? ''
  const toggle = (label: string, isOn: boolean) =>
    choose(multi_select ? [...chosen.filter((one) => one !== label), ...(isOn ? [label] : [])] : [label])
  return (
    <fieldset>
      <legend>{visible(question.question)}</legend>
      {options.map(({ label, description }, index) => (
        <label class="option" key={label}>
          <input
            type={multi_select ? 'checkbox' : 'radio'}
            name={id}
            checked={chosen.includes(label)}
            data-key={hasKeys ? String(index + 1) : undefined}
            onChange={({ currentTarget }) => toggle(label, currentTarget.checked)}
          />
          <span>
            {hasKeys && <KeyHint name={String(index + 1)} />} {visible(label)}
            <span class="quiet"> {visible(description)}</span>
          </span>
        </label>
      ))}
      <label class="field">
        {texts.value.otherAnswer}
        <input
          type="text"
          value={other}
          onInput={({ currentTarget }) =>
            choose([
              ...(multi_select ? chosen.filter((label) => labels.includes(label)) : []),
              ...(currentTarget.value ? [currentTarget.value] : []),
            ])
          }
        />
      </label>
    </fieldset>
  )
}

/** Gives the focus to the next card after a decision: the keys go on working. */
function focusNext(card: HTMLElement | null): void {
  const cards = [...document.querySelectorAll<HTMLElement>('[data-request]')]
  const index = card ? cards.indexOf(card) : -1
  const next = cards[index + 1] ?? cards.find((other) => other !== card)
  next?.focus()
}

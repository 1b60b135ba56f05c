/** A server asks the user while a call runs (elicitation): its form becomes questions, and the answers its content. */
import type { AskedQuestion } from '../../contract/values/question.ts'
import { DECLINE, MAX_QUESTION_CHARS, MAX_QUESTIONS } from '../../contract/values/question.ts'
import type { ShowText } from '../tools/shown-text.ts'
import type { LiveCall } from './live-call.ts'

/** Fields of one form. */
const MAX_FIELDS = 12
const MAX_OPTIONS = 20
const MAX_LABEL_CHARS = 200
const MAX_NAME_CHARS = 100

const ACCEPT = 'Accept'
const SUGGESTED = 'Suggested by the server'

type Content = Record<string, string | number | boolean | string[]>
export type ElicitationAnswer =
  | { readonly action: 'accept'; readonly content: Content }
  | { readonly action: 'decline' | 'cancel' }

/** `params` as the server sent them, with an unknown schema. */
export async function answerElicitation(
  { name: server, show }: { readonly name: string; readonly show: ShowText },
  params: { readonly message: string; readonly requestedSchema?: unknown },
  call: Pick<LiveCall, 'elicit'>,
  signal: AbortSignal,
): Promise<ElicitationAnswer> {
  const fields = readFields(params.requestedSchema, show)
  const intro = `The MCP server ${server} asks: ${show(params.message, MAX_QUESTION_CHARS / 2)}`
  // Nothing is made up where a form is too long to be asked.
  if (!fields) return { action: 'decline' }
  const content: Content = {}
  for (let at = 0; at === 0 || at < fields.length; at += MAX_QUESTIONS) {
    const askedFields = fields.slice(at, at + MAX_QUESTIONS)
    const questions =
      askedFields.length > 0
        ? askedFields.map((field, index) => questionOf(field, at + index === 0 ? intro : undefined, { server, show }))
        : [confirmation(intro, server)]
    const answers = await call.elicit({ server, questions }, signal)
    if (!answers) return { action: 'cancel' }
    const givenAnswers = questions.map(({ question }) => answers[question])
    if (givenAnswers.some((texts) => texts?.length === 1 && texts[0] === DECLINE)) return { action: 'decline' }
    if (askedFields.length === 0)
      return givenAnswers[0]?.[0] === ACCEPT ? { action: 'accept', content } : { action: 'decline' }
    for (const [index, field] of askedFields.entries()) {
      const value = valueOf(field, givenAnswers[index])
      if (value === undefined && field.isRequired) return { action: 'cancel' }
      if (value !== undefined) content[field.name] = value
    }
  }
  return { action: 'accept', content }
}

type Field = {
  readonly name: string
  readonly text: string
  readonly kind: 'string' | 'number' | 'integer' | 'boolean' | 'list'
  readonly isRequired: boolean
  /** What the server suggests, as the label of an option. */
  readonly suggested: string | undefined
  /** Values with their labels; empty for free text. */
  readonly choices: readonly { readonly value: string; readonly label: string }[]
}

type Plain = Readonly<Record<string, unknown>>

const asPlain = (value: unknown): Plain => (typeof value === 'object' && value !== null ? { ...value } : {})
const asText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

function readFields(schema: unknown, show: ShowText): readonly Field[] | undefined {
  const { properties, required } = asPlain(schema)
  const entries = Object.entries(asPlain(properties))
  if (entries.length > MAX_FIELDS) return undefined
  const shownNames = new Set(entries.map(([name]) => show(name, MAX_NAME_CHARS)))
  if (shownNames.size < entries.length || shownNames.has('__proto__')) return undefined
  return entries.map(([name, property]) => {
    const { type, title, description, default: suggestion } = asPlain(property)
    const choices = choicesOf(property, show)
    const kind =
      type === 'array' ? 'list' : type === 'number' || type === 'integer' || type === 'boolean' ? type : 'string'
    const text = [asText(title) ?? name, asText(description)].filter(Boolean).join(': ')
    const suggestedAnswer = suggestedIn(suggestion, choices, show)
    return {
      name,
      kind,
      text,
      choices,
      suggested: suggestedAnswer,
      isRequired: Array.isArray(required) && required.includes(name),
    }
  })
}

/** Undefined if the default cannot be an option. */
function suggestedIn(value: unknown, choices: Field['choices'], show: ShowText): string | undefined {
  if (typeof value === 'boolean') return value ? 'Yes' : 'No'
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const text = String(value)
  const label = choices.find((choice) => choice.value === text)?.label ?? text
  const isPlain = label.trim() !== '' && label !== DECLINE && label.length <= MAX_LABEL_CHARS
  return isPlain && show(label, MAX_LABEL_CHARS) === label ? label : undefined
}

/** Knows the forms of the specification: `enum` with `enumNames`, `oneOf`, and lists of them. */
function choicesOf(property: unknown, show: ShowText): Field['choices'] {
  const { type, enum: values, enumNames, oneOf, items } = asPlain(property)
  if (type === 'array') {
    const { anyOf, ...list } = asPlain(items)
    return choicesOf({ ...list, ...(Array.isArray(anyOf) && { oneOf: anyOf }) }, show)
  }
  const names: readonly unknown[] = Array.isArray(enumNames) ? enumNames : []
  const foundChoices = Array.isArray(oneOf)
    ? oneOf.map((each) => ({ value: asText(asPlain(each)['const']), label: asText(asPlain(each)['title']) }))
    : Array.isArray(values)
      ? values.map((value, at) => ({ value: asText(value), label: asText(names[at]) }))
      : []
  const labels = new Set<string>()
  return foundChoices.slice(0, MAX_OPTIONS).flatMap(({ value, label = value }) => {
    if (value === undefined || label === undefined) return []
    const shownLabel = show(label, MAX_LABEL_CHARS)
    if (shownLabel.trim() === '' || shownLabel === DECLINE || labels.has(shownLabel)) return []
    labels.add(shownLabel)
    return [{ value, label: shownLabel }]
  })
}

type FormOrigin = { readonly server: string; readonly show: ShowText }

function questionOf(field: Field, intro: string | undefined, { server, show }: FormOrigin): AskedQuestion {
  const knownLabels = field.kind === 'boolean' ? ['Yes', 'No'] : field.choices.map(({ label }) => label)
  const { suggested } = field
  const labels = suggested === undefined || knownLabels.includes(suggested) ? knownLabels : [suggested, ...knownLabels]
  const lines = [intro, `${show(field.text, MAX_QUESTION_CHARS / 4)}${field.isRequired ? '' : ' (optional)'}`]
  const options = [...labels, DECLINE].map((label) => ({ label, description: label === suggested ? SUGGESTED : '' }))
  const question = lines.filter((line) => line !== undefined).join('\n')
  return {
    question: `${question} [${show(field.name, MAX_NAME_CHARS)}]`,
    header: server,
    options,
    multi_select: field.kind === 'list',
  }
}

const confirmation = (question: string, header: string): AskedQuestion => ({
  question,
  header,
  options: [ACCEPT, DECLINE].map((label) => ({ label, description: '' })),
  multi_select: false,
})

/** Undefined if there is no valid answer. */
function valueOf({ kind, choices }: Field, answer: readonly string[] | undefined): Content[string] | undefined {
  const valueFor = (label: string) => choices.find((choice) => choice.label === label)?.value ?? label
  const [first] = answer ?? []
  if (first === undefined) return undefined
  switch (kind) {
    case 'list':
      return answer?.map(valueFor)
    case 'boolean':
      return /^(yes|true)$/i.test(first) ? true : /^(no|false)$/i.test(first) ? false : undefined
    case 'number':
    case 'integer': {
      const number = Number(first)
      return first.trim() !== '' && Number.isFinite(number) && (kind === 'number' || Number.isInteger(number))
        ? number
        : undefined
    }
    default:
      return valueFor(first)
  }
}

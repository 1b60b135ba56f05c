/**
 * How clients show a request, and how they let a person answer. Plain data: the dashboard is built with it, and without the
 * schemas. `{host}` in a text is the field `host` of the payload.
 */
export type InLanguages = { readonly english: string; readonly german: string }

type Titled = { readonly title: InLanguages }

/** A program answers; or a person decides about each of its calls. */
type PlainForm = Titled & { readonly is: 'program' | 'calls' }

/** A person answers the `questions` of its payload. */
type QuestionForm = Titled & {
  readonly is: 'questions'
  /** Begins a sentence, such as `A question`. */
  readonly noun: string
  /** The answer of a client that nobody answers. Undefined: it rests until somebody does, and a message closes it. */
  readonly unanswered: string | undefined
}

/** A person allows it or denies it. The answer has a `behavior`, and `remember` if there is `remembered`. */
export type DecisionForm = Titled & {
  readonly is: 'decision'
  /** The whole of what is decided about. */
  readonly subject: string
  /** The same in a notification. */
  readonly short: string
  /** A sentence with the subject. */
  readonly sentence: InLanguages
  /** The title of a panel with the subject. */
  readonly question: string
  /** The title of a call, as an editor shows it. */
  readonly action: string
  readonly editorKind: 'execute' | 'fetch' | 'other'
  /** The thing that is decided about, without its name: `a host`. */
  readonly noun: string
  /** The same with its name. */
  readonly matter: string
  /** The begin of a sentence that the payload ends. */
  readonly opening: string
  /** What an answer that is remembered allows. */
  readonly remembered?: string
  /** Why a client refuses it that has nobody to ask. */
  readonly refusal: string
}

export type Form = PlainForm | QuestionForm | DecisionForm

/** Fills the fields of a payload into a text of its form. */
export const fill = (text: string, payload: object): string =>
  text.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(new Map(Object.entries(payload)).get(name)))

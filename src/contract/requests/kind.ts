/** What a kind of request is: everything that differs from kind to kind. The other files of this folder are the kinds. */
import type { z } from 'zod'
import type { DecisionForm, Form } from './form.ts'

/** What the log has of a kind. */
type Logged<Payload extends z.ZodObject, Answer extends z.ZodObject> = {
  /** The payload of `RequestOpened`. */
  readonly opened: Payload
  /** The answer of `RequestAnswered`. */
  readonly answered: Answer
  /** One line about the payload, without its subject. */
  readonly asks: (payload: z.infer<Payload>) => string
  /** One line about an answer. */
  readonly says: (answer: z.infer<Answer>) => string
}

/** Infers the types of the lines from those of the schemas. */
export const logEntry = <Payload extends z.ZodObject, Answer extends z.ZodObject>(parts: Logged<Payload, Answer>) =>
  parts

type OfKind = {
  /** Is a part of the names of its schemas. */
  readonly name: string
  readonly about: string
  /** What a key needs to answer it. */
  readonly scope: 'approve' | 'write'
  /** What a list shows. */
  readonly payload: z.ZodObject
  readonly example: object
  readonly asks: (payload: never) => string
  /** Says to those who cannot answer who can. */
  readonly who: string
}

/** `form`: how clients show it. `answer`: the body of an answer, without its `kind`. */
type OfForm =
  | { readonly form: Exclude<Form, DecisionForm>; readonly answer: z.ZodRawShape }
  | {
      readonly form: DecisionForm & { remembered: string }
      readonly answer: Decided & { remember: z.ZodType<boolean> }
    }
  | { readonly form: DecisionForm & { remembered?: never }; readonly answer: Decided & { remember?: never } }

type Decided = { readonly behavior: z.ZodType<'allow' | 'deny'> }

type OfLog = {
  readonly opened: z.ZodObject
  readonly answered: z.ZodObject
  readonly says: (answer: never) => string
}

/**
 * `waits`: what the run does meanwhile. With a status, it leaves its slot, and has this status. `call`: a running call holds the
 * request and gets the answer (`ToolContext.openRequest`), and the file of the kind is all of it. `elsewhere`: something else that the
 * agent has begun holds it. A kind without `opened` is only in memory.
 */
export type KindOfRequest = OfKind &
  OfForm &
  (
    | (OfLog & {
        readonly waits: 'waiting_for_confirmation' | 'waiting_for_input' | 'waiting_for_client' | 'call' | 'elsewhere'
      })
    | { readonly waits: 'elsewhere'; readonly opened?: never }
  )

export const PERSON = 'A person answers in the dashboard or the chat, or a program with the API'

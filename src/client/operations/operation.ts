/** How an operation of the REST API is described: its route, and the types of what is sent and returned. */
import type { z } from 'zod'

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'

/** The parameters of a query: numbers and lists as such, not as the text that they are in a URL. */
export type QueryOf<Schema extends z.ZodType> = {
  [Name in keyof z.input<Schema>]: Name extends keyof z.output<Schema> ? Parameter<z.output<Schema>[Name]> : never
}
type Parameter<Value> = Value extends ReadonlySet<infer Item> ? readonly Item[] : Value

/**
 * One operation. The types of the body, the query and the reply exist only for the compiler: the server has checked
 * what it returns.
 */
export class Operation<Route extends string, Body = undefined, Query = undefined, Reply = void> {
  readonly method: Method
  readonly route: Route
  /** Whether the route accepts an `Idempotency-Key`, so that a request can be repeated. */
  readonly isKeyed: boolean
  readonly sendsJson: boolean
  /** The body before its defaults are filled in. */
  declare readonly types: { readonly body: Body; readonly query: Query; readonly reply: Reply }

  constructor(method: Method, route: Route, { isKeyed = false, sendsJson = false } = {}) {
    this.method = method
    this.route = route
    this.isKeyed = isKeyed
    this.sendsJson = sendsJson
  }

  sends<Schema extends z.ZodType>() {
    const flags = { isKeyed: this.isKeyed, sendsJson: true }
    return new Operation<Route, z.input<Schema>, Query, Reply>(this.method, this.route, flags)
  }

  filters<Schema extends z.ZodType>() {
    return new Operation<Route, Body, QueryOf<Schema>, Reply>(this.method, this.route, this)
  }

  returns<Schema extends z.ZodType>() {
    return new Operation<Route, Body, Query, z.output<Schema>>(this.method, this.route, this)
  }
}

export const get = <Route extends string>(route: Route) => new Operation('GET', route)
export const put = <Route extends string>(route: Route) => new Operation('PUT', route)
export const remove = <Route extends string>(route: Route) => new Operation('DELETE', route)
export const post = <Route extends string>(route: Route) => new Operation('POST', route)
/** A POST request that the server executes once for each `Idempotency-Key`. */
export const postOnce = <Route extends string>(route: Route) => new Operation('POST', route, { isKeyed: true })

/** The names in braces in a route: `{ id: string }` of `/conversations/{id}`. */
export type ParamsOf<Route extends string> = Route extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name]: string | number } & ParamsOf<Rest>
  : unknown

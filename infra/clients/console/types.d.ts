// Types that several modules share. `methods` is generated from the catalogue by `make check-js`.
import type { ApiError } from "./api.js";
import type { Methods } from "methods";

export type Role = Methods["memory-server/memory/add_message"]["params"]["role"];

/** The methods of recall-kit, without its prefix. */
export type RecallKit = { [M in keyof Methods as M extends `recall-kit/${infer N}` ? N : never]: Methods[M] };

/** A failed call, as ApiError has it. */
export interface Failure {
  code: string;
  message: string;
  details: any;
  guidance: string;
  status: number;
  retryAfter: number;
  correlationId: string;
  data: any;
}

export type Problem = ApiError | null;

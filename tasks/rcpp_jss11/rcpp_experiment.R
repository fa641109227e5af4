# The designated experiment: kernels.cpp compiled and called through Rcpp, on the vectors of challenge.txt.
# First library.json (which Rcpp this is), then result.json.

json <- function(value) {
  if (is.list(value)) {
    sprintf("{%s}", paste0('"', names(value), '": ', vapply(value, json, ""), collapse = ", "))
  } else if (is.character(value)) {
    sprintf("[%s]", paste0('"', gsub('(["\\\\])', "\\\\\\1", value), '"', collapse = ", "))
  } else {
    sprintf("[%s]", paste(sprintf("%.17g", value), collapse = ", "))
  }
}
write_json <- function(value, path) writeLines(json(value), path)

library(Rcpp)
mapped <- grep("/Rcpp[.]so$", readLines("/proc/self/maps"), value = TRUE)
write_json(
  list(version = as.character(packageVersion("Rcpp")), mapped = unique(sub("^[^/]*", "", mapped))),
  "library.json"
)

sourceCpp("kernels.cpp")

lines <- lapply(strsplit(readLines("challenge.txt"), " "), as.numeric)
a <- lines[[1]]
b <- lines[[2]]

# The paper's convolution, as R would have it.
convolve_r <- function(a, b) {
  ab <- numeric(length(a) + length(b) - 1)
  for (i in seq_along(a)) {
    for (j in seq_along(b)) {
      ab[i + j - 1] <- ab[i + j - 1] + a[i] * b[j]
    }
  }
  ab
}
cpu_seconds <- function(convolve, times) {
  convolve(a, b)
  system.time(for (i in seq_len(times)) convolve(a, b))[["user.self"]] / times
}

write_json(
  list(
    headers = version_cpp(),
    convolved_r = convolve_r(a, b),
    convolved_cpp = convolve_cpp(a, b),
    polynomial = polynomial_cpp(lines[[3]]),
    turned = turn_cpp(list(first = lines[[3]], second = "text")),
    allowed = refuse_cpp(lines[[4]][1]),
    refused = tryCatch(list(value = refuse_cpp(lines[[4]][2])), error = function(e) list(error = conditionMessage(e))),
    cpu_seconds_r = cpu_seconds(convolve_r, 10),
    cpu_seconds_cpp = cpu_seconds(convolve_cpp, 300)
  ),
  "result.json"
)

# Read a problem as text: texts and arrays by key; "kernels" is a list of matrices.
using LinearAlgebra
function read_problem(path)
    found = Dict{String,Any}("kernels" => Matrix{Float64}[])
    open(path) do file
        @assert split(readline(file)) == ["mklopt-problem", "1"]
        while true
            words = split(readline(file))
            words[1] == "end" && break
            key = String(words[2])
            if words[1] == "text"
                found[key] = String(words[3])
                continue
            end
            rows, columns = parse.(Int, words[3:4])
            table = zeros(rows, columns)
            for i in 1:rows
                table[i, :] = parse.(Float64, split(readline(file)))
            end
            found[key] = table
            if startswith(key, "factor.")
                push!(found["kernels"], table * table')
            elseif startswith(key, "triangle.")
                n = length(found["y"])
                K = zeros(n, n)
                K[tril!(trues(n, n))] = table
                push!(found["kernels"], K + tril(K, -1)')
            end
        end
    end
    found
end
